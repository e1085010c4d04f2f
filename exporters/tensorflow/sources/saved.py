"""SavedModels, as folders or loaded: one of their signatures, or of the functions that were saved with them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow import upstream
from entrepot.exporters.tensorflow.sources.callable import Opened
from entrepot.exporters.tensorflow.sources.frozen import opened_sessions, tensors
from entrepot.exporters.tensorflow.sources.harmless import check_harmless
from entrepot.ir.errors import EntrepotError, InputError, ModelFormatError

_DEFAULT = "serving_default"


def opened_folder(folder: Path, wanted: str = "") -> Opened:
    """A SavedModel on disk.

    Args:
        folder: Where it is.
        wanted: The signature or function to take; the default one if empty.

    Raises:
        ModelFormatError: TensorFlow cannot read it.
        InputError: There is no such signature, or nothing says which of its graphs to take.
    """
    try:
        tags = _chosen(upstream.tag_sets(folder), folder)
    except (*_UNREADABLE, tf.errors.OpError) as error:
        raise _unreadable(folder, error) from error
    try:
        loaded = tf.saved_model.load(str(folder), tags)
    except (*_UNREADABLE, tf.errors.OpError) as error:
        try:  # objects that this Keras makes in another way than that which saved them, as optimizers, are no graph's
            return opened_sessions(folder, tags, wanted)
        except ModelFormatError:
            raise _unreadable(folder, error) from error
    if hasattr(loaded, "prune"):
        return opened_sessions(folder, tags, wanted)
    return opened_object(loaded, folder.resolve().name, wanted)


def _chosen(found: Sequence[Sequence[str]], folder: Path) -> list[str]:
    """The tags of the graph to take where a SavedModel has several, for training, serving or another device."""
    if not found:
        raise ModelFormatError("it holds no graph", path=folder)
    tags = found[0] if len(found) == 1 else [_SERVING]
    if tags in found:
        return list(tags)
    raise InputError(
        f"the SavedModel has several graphs, and none for {_SERVING!r} alone; their tags: "
        + ", ".join("+".join(tags) or "none" for tags in found),
        hint="load the one that is meant with tf.saved_model.load(path, tags=[...]), and export one of its signatures",
    )


_SERVING = "serve"
_UNREADABLE = (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, NotImplementedError)


def _unreadable(folder: Path, error: Exception) -> Exception:
    if isinstance(error, EntrepotError):
        return error
    return ModelFormatError(f"TensorFlow cannot load it: {_first_line(error)}", path=folder)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def opened_object(loaded: Any, name: str, wanted: str = "") -> Opened:
    """A SavedModel that was loaded.

    Raises:
        InputError: It has no such signature, or several and no default one.
    """
    found = _choices(loaded)
    chosen = wanted or _DEFAULT
    if chosen not in found and not wanted:
        chosen = "__call__" if "__call__" in found else next(iter(found)) if len(found) == 1 else ""
    if chosen not in found:
        missing = f"no signature '{wanted}'" if wanted else "no default signature"
        have = ", ".join(sorted(found)) or "none"
        raise InputError(
            f"the SavedModel has {missing}; it has: {have}",
            hint=f"name one: '{name}#{next(iter(found))}'" if found else "save it with signatures=...",
        )
    function = found[chosen]
    concrete = _concrete(function)
    check_harmless(concrete)
    title = name if chosen in (_DEFAULT, "__call__") else chosen
    return opened_concrete(concrete, title, f"{name}:{chosen}", noun="signature", keeps=loaded)


def _choices(loaded: Any) -> Mapping[str, Any]:
    """Its signatures, and the functions that were saved with it, by name."""
    signatures = dict(getattr(loaded, "signatures", {}))
    functions = {
        name: value
        for name, value in vars(loaded).items()
        if isinstance(value, tf.types.experimental.PolymorphicFunction) and not name.startswith("_")
    }
    if callable(loaded) and hasattr(loaded.__call__, "concrete_functions"):
        functions["__call__"] = loaded.__call__
    usable = {name: value for name, value in functions.items() if getattr(value, "concrete_functions", ())}
    return {**usable, **signatures}


def _concrete(function: Any) -> Any:
    """The one concrete function, or the last one that was traced: it is the most general where shapes were relaxed."""
    concrete = getattr(function, "concrete_functions", None)
    return function if concrete is None else concrete[-1]


def opened_concrete(concrete: Any, name: str, origin: str, noun: str = "function", keeps: Any = None) -> Opened:
    """A concrete function, which knows what it takes."""
    args, kwargs = concrete.structured_input_signature
    is_from_file = noun == "signature" or upstream.is_restored(concrete)
    if is_from_file:  # which keeps them in any order, TensorFlow in that of the alphabet
        kwargs = {name: kwargs[name] for name in sorted(kwargs)}
    only = next(iter(kwargs)) if not args and len(kwargs) == 1 else ""
    parameters = getattr(concrete, "function_type", None)
    names = list(parameters.parameters) if parameters is not None else []
    keywords = [*kwargs] if not args else []

    def call(*given: Any, **named: Any) -> Any:
        by_name = bool(only and given)  # there is no doubt which input is meant
        found = tensors({only: given[0]} if by_name else named)
        _check_shapes(found, kwargs)
        result = concrete(*([] if by_name else tensors(given)), **found)
        return in_order(result) if is_from_file else result

    order = keywords or names
    kind = inspect.Parameter.KEYWORD_ONLY if keywords and not only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    if order:
        call.__signature__ = inspect.Signature([inspect.Parameter(each, kind) for each in order])  # type: ignore[attr-defined]
    return Opened(call, name, origin, noun=noun, has_python=False, takes=(args, kwargs), keeps=keeps)


def in_order(result: Any) -> Any:
    """A result with its keys in the order of the alphabet: a file keeps them in any, another in each process."""
    if isinstance(result, dict):
        return {key: in_order(result[key]) for key in sorted(result)}
    if isinstance(result, list):
        return [in_order(each) for each in result]
    if isinstance(result, tuple):
        parts = map(in_order, result)
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return result


def _check_shapes(given: Mapping[str, Any], specs: Mapping[str, Any]) -> None:
    """Hold a call by name to the sizes that a signature states, which TensorFlow does of calls by position alone."""
    for name, tensor in given.items():
        spec = specs.get(name)
        if isinstance(spec, tf.TensorSpec) and not spec.shape.is_compatible_with(tensor.shape):
            raise ValueError(f"'{name}' is {tensor.shape}, and the signature takes {spec.shape}")
