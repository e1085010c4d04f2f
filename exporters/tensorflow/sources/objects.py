"""Objects of TensorFlow that can be called: functions, concrete ones, modules."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import tensorflow as tf

from entrepot.exporters.recognition import surroundings
from entrepot.exporters.tensorflow import upstream
from entrepot.exporters.tensorflow.sources.callable import Opened
from entrepot.exporters.tensorflow.sources.saved import in_order, opened_concrete, opened_object
from entrepot.ir.errors import InputError


def opened(obj: Any) -> Opened:
    """A function, a concrete function, or a module that can be called.

    Raises:
        InputError: It is none of these.
    """
    if isinstance(obj, tf.types.experimental.ConcreteFunction):
        name = tf.compat.as_str(obj.name).removeprefix("__inference_").rstrip("0123456789_") or "function"
        return opened_concrete(obj, name, f"tensorflow:{name}")
    if hasattr(obj, "signatures") and hasattr(obj, "tensorflow_version"):
        return opened_object(obj, "model")
    if isinstance(obj, tf.Module):
        return _module(obj)
    if callable(obj):
        return _function(obj)
    raise InputError(
        f"cannot export a {type(obj).__qualname__}", hint="give a tf.function, or a tf.Module that can be called"
    )


def _module(module: tf.Module) -> Opened:
    if not callable(module):
        raise InputError(
            f"a {type(module).__qualname__} cannot be called",
            hint="give it a __call__, or export one of its functions: ep.export(module.function, x)",
        )
    cls = type(module)
    return Opened(
        module.__call__, cls.__name__, f"{cls.__module__}:{cls.__qualname__}", "module", tf.function(module.__call__),
        takes=_stated(module.__call__), variables=lambda: module.variables,
    )  # fmt: skip


def _stated(function: Any) -> tuple[Any, Any] | None:
    """What a ``tf.function`` was told that it takes."""
    signature = getattr(function, "input_signature", None)
    return None if signature is None else (tuple(signature), {})


def _function(function: Any) -> Opened:
    plain: Any = function.func if isinstance(function, functools.partial) else function
    is_graph = isinstance(plain, tf.types.experimental.PolymorphicFunction)
    plain = inspect.unwrap(plain.python_function if is_graph else plain)
    name = getattr(plain, "__name__", type(plain).__name__)
    origin = f"{getattr(plain, '__module__', '')}:{getattr(plain, '__qualname__', name)}"
    around = surroundings(plain).values()
    parts = [each for each in around if isinstance(each, tf.Module)]
    own = [each for each in around if isinstance(each, tf.Variable)]
    called = _ordered(function) if upstream.is_restored(function) else function
    return Opened(
        called, name, origin, traceable=None if is_graph else tf.function(function), takes=_stated(function),
        variables=lambda: [*own, *(variable for part in parts for variable in part.variables)],
    )  # fmt: skip


def _ordered(function: Any) -> Any:
    """A function from a file, whose results have one order."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return in_order(function(*args, **kwargs))

    return call
