"""Everything that is private in Keras and is used here; ``tests/exporters/keras/test_upstream.py`` has the canaries."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
from keras.src import backend
from keras.src.backend.common.global_state import get_global_attribute, set_global_attribute
from keras.src.backend.common.masking import get_keras_mask, set_keras_mask
from keras.src.backend.common.variables import AutocastScope
from keras.src.models import Functional
from keras.src.ops.node import Node
from keras.src.ops.operation import Operation
from keras.src.utils.backend_utils import DynamicBackend

__all__ = ["AutocastScope", "Functional", "Node", "Operation", "get_keras_mask", "set_keras_mask"]

LAYERS = "keras.src.layers"
OPERATIONS = ("keras.src.ops", "keras.src.activations")
"""Where the classes of Keras are defined; those of others are elsewhere."""

_REASON = re.compile("\x1b\\[1m(.*?)\x1b\\[0m", re.DOTALL)
_LONGEST = 240

_COUNTERS = "object_name_uids"


def node_of(tensor: Any) -> Any | None:
    """The call that made a symbolic tensor, or ``None`` for one that comes from outside."""
    history = getattr(tensor, "_keras_history", None)
    return None if history is None or history.operation is None else history.operation._inbound_nodes[history[1]]


def outputs_of(node: Any) -> Sequence[Any]:
    """The symbolic tensors that a call made."""
    return list(node.outputs)


def arguments_of(node: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What was given in a call."""
    return node.arguments.args, node.arguments.kwargs


def parents_of(node: Any) -> Sequence[Any]:
    """The symbolic tensors among what was given."""
    return list(node.arguments.keras_tensors)


def ordered_nodes(model: Any) -> list[Any]:
    """The calls that a functional model consists of, in the order in which it makes them."""
    depths = model._nodes_by_depth
    return [node for depth in sorted(depths, reverse=True) for node in depths[depth] if not node.is_input]


def input_structure(model: Any) -> Any:
    """The symbolic inputs of a functional model, as its caller arranges them."""
    return model._inputs_struct


def output_structure(model: Any) -> Any:
    """The symbolic outputs of a functional model, as its caller gets them."""
    return model._outputs_struct


def input_names(model: Any) -> list[str]:
    """What the inputs of a functional model are called."""
    return [tensor._keras_history.operation.name for tensor in model.inputs]


def is_cast(variable: Any) -> bool:
    """Whether a variable is brought to the type that its layer computes in."""
    return bool(variable._autocast)


def graph_of(model: Any) -> Any | None:
    """The functional model that a model is, or that a sequential one consists of; ``None`` for any other."""
    if isinstance(model, keras.Sequential):
        return model._functional if type(model).call is keras.Sequential.call else None
    plain = isinstance(model, Functional) and type(model).call is Functional.call
    return model if plain else None


def converts_inputs(layer: Any) -> bool:
    """Whether a layer brings floating-point arguments to its own type."""
    return bool(layer._convert_input_args and layer.autocast)


def signature_of(layer: Any) -> Any:
    """How a layer's ``call`` is called."""
    return layer._call_signature


def is_own(layer: Any) -> bool:
    """Whether the class of a layer is defined in Keras."""
    return type(layer).__module__.startswith("keras.src.")


def is_own_operation(operation: Any) -> bool:
    """Whether the class of an operation is defined in Keras."""
    return type(operation).__module__.startswith(OPERATIONS)


def nested_layers(layer: Any) -> list[Any]:
    """A layer and everything in it."""
    return list(layer._flatten_layers())


class _Operations:
    """A backend whose functions are those of ``keras.ops``, which take symbolic tensors, too."""

    image, linalg = keras.ops.image, keras.ops.linalg
    core = math = nn = numpy = keras.ops

    def __getattr__(self, name: str) -> Any:
        return getattr(keras.ops if hasattr(keras.ops, name) else backend, name)


_OPERATIONS = _Operations()


def stand_in(layer: Any, symbol: Callable[[Any], Any]) -> Any:
    """A copy of a layer that can be called on symbolic tensors.

    Its variables are such tensors themselves, since the operators of variables take no others, and Keras' own layers
    and activations name ``keras.ops`` where they name their backend.
    """
    other = object.__new__(type(layer))
    for name, value in layer.__dict__.items():
        known = symbol(value) if isinstance(value, keras.Variable) else renamed(value)
        other.__dict__[name] = known
    if type(layer).call.__module__.startswith("keras.src"):
        other.__dict__["call"] = types.MethodType(renamed(type(layer).call), other)
    return other


def renamed(value: Any) -> Any:
    """A function of Keras as one that takes symbolic tensors; its backend as ``keras.ops``; anything else as it is."""
    if isinstance(value, DynamicBackend):
        return _OPERATIONS
    inner = inspect.unwrap(value) if inspect.isfunction(value) else value
    if not inspect.isfunction(inner) or not inner.__module__.startswith("keras.src"):
        return value
    return _in_operations(inner) if "backend" in inner.__globals__ else value


@functools.cache
def _in_operations(function: Any) -> Any:
    return _in(function, {name: _static(item) for name, item in function.__globals__.items()})


def _in(function: Any, scope: dict[str, Any]) -> Any:
    """A function that finds ``keras.ops`` where its module has the backend."""
    scope["backend"] = _OPERATIONS
    made = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _static(item: Any) -> Any:
    """An operation that is called without an instance, which looks its backend up for itself."""
    function = inspect.getattr_static(item, "static_call", None) if inspect.isclass(item) else None
    if not isinstance(function, staticmethod):
        return item
    call = staticmethod(_in(function.__func__, {**function.__func__.__globals__}))
    return type(item.__name__, (item,), {"static_call": call, "__module__": item.__module__})


@contextlib.contextmanager
def unrecorded(layer: Any) -> Iterator[None]:
    """Calls on symbolic tensors inside leave no traces in the layers, nor in the names of later ones."""
    parts = nested_layers(layer)
    before = [(part, len(part._inbound_nodes), len(part._outbound_nodes)) for part in parts]
    counters = get_global_attribute(_COUNTERS)
    kept = None if counters is None else counters.copy()
    try:
        yield
    finally:
        for part, inbound, outbound in before:
            del part._inbound_nodes[inbound:]
            del part._outbound_nodes[outbound:]
        set_global_attribute(_COUNTERS, kept)


def reason_of(error: BaseException) -> str:
    """What went wrong, in one line: Keras prints it in bold, after where it was and before all that was given."""
    found = _REASON.search(str(error))
    text = " ".join((found.group(1) if found else str(error)).split()) or type(error).__name__
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]} … {text[-half:]}"


def attention_scores(layer: Any, *, query: Any, key: Any) -> Any:
    """How well each key fits each query, by an attention layer."""
    return layer._calculate_scores(query=query, key=key)


def attention_weights(layer: Any, scores: Any, value: Any, mask: Any) -> Any:
    """What an attention layer makes of scores: the sums, and the weights of each value."""
    return layer._apply_scores(scores=scores, value=value, scores_mask=mask, training=False)
