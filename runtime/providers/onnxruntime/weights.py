"""How the weights of a model reach onnxruntime: where they lie, in files or in memory, and in a protobuf if small.

Writing a gigabyte into a protobuf, that into bytes, and reading it again costs seconds and four copies.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import onnx
import onnx_ir as ir

from entrepot.ir.io.external import MappedTensor
from entrepot.ir.io.serialize import inline, serialize, write_header
from entrepot.runtime.providers.onnxruntime.guards import guard

if TYPE_CHECKING:
    from entrepot.ir.model import Model

INLINE_BYTES = 1 << 30
"""More than this does not go into a protobuf, which ends at 2 GB."""

_COPIED_BYTES = 1 << 27
"""More than this is not copied and laid out anew for a few runs: that takes longer than they gain, and memory."""

_PASSING: ContextVar[bool] = ContextVar("passing", default=False)


@contextlib.contextmanager
def passing() -> Iterator[None]:
    """Sessions that are opened here run a few times only, so the weights of large models stay where they are."""
    before = _PASSING.set(True)
    try:
        yield
    finally:
        _PASSING.reset(before)


def is_passing(model: Model) -> bool:
    """Whether a model that is opened now is large, and runs a few times only."""
    return _PASSING.get() and _size(_weights(model)) >= _COPIED_BYTES


_SMALL = 4096
"""Bytes of a tensor that onnxruntime may want to read while it infers shapes."""


def is_large(model: Model) -> bool:
    """Whether a model's weights are better not copied."""
    return _size(_weights(model)) >= INLINE_BYTES


class Handed(NamedTuple):
    """A model for onnxruntime.

    Attributes:
        proto: The model without its larger weights.
        kept: What has to live as long as the session.
        fed: Weights that are inputs of the proto.
    """

    proto: bytes
    kept: tuple[Any, ...] = ()
    fed: Mapping[str, np.ndarray[Any, Any]] = MappingProxyType({})


def hand_over(model: Model, options: Any, *, frugal: bool) -> Handed | None:
    """A model without its larger weights, and these.

    Args:
        model: At an opset that onnxruntime loads.
        options: The session's, which are told where the weights lie.
        frugal: Whether large weights stay where they are: onnxruntime copies those that it is given (1.31), while
            inputs, and what lies in files, it reads in place.

    Returns:
        ``None`` if what would have to be in the protobuf does not fit there.
    """
    weights = _weights(model)
    folder = _folder(weights) if frugal and _size(weights) >= INLINE_BYTES else None
    if folder is not None:
        _leave_in_files(options, folder)
        return Handed(_without(model, lambda _, tensor: _place(tensor, folder)))
    beside = [value for value in weights if _is_array(value)]
    if _size(weights) - _size(beside) >= INLINE_BYTES:
        return None
    names = {value.name for value in beside}
    place = {"location": "memory"}
    if frugal and _size(weights) >= _COPIED_BYTES:
        return Handed(_without(model, lambda name, _: place if name in names else {}, fed=names), fed=_arrays(beside))
    return Handed(_without(model, lambda name, _: place if name in names else {}), _give(options, beside))


def _weights(model: Model) -> list[ir.Value]:
    values = model.ir.graph.initializers.values()
    return [each for each in values if (tensor := each.const_value) is not None and tensor.dtype != ir.DataType.STRING]


def _size(weights: list[ir.Value]) -> int:
    return sum(value.const_value.nbytes for value in weights if value.const_value is not None)


def _is_array(value: ir.Value) -> bool:
    """Whether onnxruntime takes a weight as NumPy has it; one that is an input as well may be fed instead."""
    tensor = value.const_value
    if tensor is None or tensor.nbytes < _SMALL or value.is_graph_input():
        return False
    dtype = tensor.dtype.numpy()
    return dtype.isbuiltin == 1 and dtype.kind in "fiub" and tensor.dtype.bitwidth == 8 * dtype.itemsize


def _arrays(weights: list[ir.Value]) -> dict[str, np.ndarray[Any, Any]]:
    return {
        value.name or "": np.ascontiguousarray(value.const_value.numpy())
        for value in weights
        if value.const_value is not None
    }


def _give(options: Any, weights: list[ir.Value]) -> tuple[Any, ...]:
    import onnxruntime

    arrays = _arrays(weights)
    given = tuple(onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in arrays.values())
    if given:
        options.add_external_initializers(list(arrays), list(given))
    return given


def _folder(weights: list[ir.Value]) -> Path | None:
    """Where weights lie in files, if most of them do."""
    tensors = [value.const_value for value in weights]
    mapped = [tensor for tensor in tensors if type(tensor) is MappedTensor and tensor.file.is_still(tensor.file.path)]
    folder = mapped[0].file.path.parent if mapped else None
    inside = sum(tensor.nbytes for tensor in mapped if tensor.file.path.parent == folder)
    return folder if _size(weights) - inside < INLINE_BYTES else None


def _place(tensor: ir.TensorProtocol, folder: Path) -> dict[str, object]:
    """Where in a file of a folder a tensor lies; empty if it does not."""
    if type(tensor) is not MappedTensor or tensor.file.path.parent != folder:
        return {}
    return {"location": tensor.file.path.name, "offset": tensor.offset or 0, "length": tensor.nbytes}


def _leave_in_files(options: Any, folder: Path) -> None:
    import onnxruntime

    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


def _without(
    model: Model,
    place: Callable[[str, ir.TensorProtocol], Mapping[str, object]],
    fed: Collection[str | None] = (),
) -> bytes:
    """The model as a proto, with references to the weights that have a place elsewhere; some are inputs of it."""

    def fill(proto: onnx.TensorProto, tensor: ir.TensorProtocol, main: bool) -> None:
        where = place(proto.name, tensor) if main else {}
        if not where:
            inline(proto, tensor, main)
            return
        write_header(proto, tensor)
        proto.data_location = onnx.TensorProto.EXTERNAL
        for key, value in where.items():
            proto.external_data.add(key=key, value=str(value))

    proto = serialize(model.ir, fill)
    guard(proto)
    _feed(proto.graph, fed)
    return proto.SerializeToString()


def _feed(graph: onnx.GraphProto, names: Collection[str | None]) -> None:
    """Make inputs of weights."""
    if not names:
        return
    weights = list(graph.initializer)
    del graph.initializer[:]
    for weight in weights:
        if weight.name in names:
            graph.input.append(onnx.helper.make_tensor_value_info(weight.name, weight.data_type, list(weight.dims)))
        else:
            graph.initializer.append(weight)
