"""A file of TensorFlow Lite as plain data."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from entrepot.exporters.tensorflow.upstream import lite_names, lite_schema
from entrepot.ir.errors import ModelFormatError

_TYPES: dict[str, Any] = {
    "FLOAT32": np.float32, "FLOAT16": np.float16, "FLOAT64": np.float64, "BFLOAT16": ml_dtypes.bfloat16,
    "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "UINT8": np.uint8, "UINT16": np.uint16,
    "UINT32": np.uint32, "UINT64": np.uint64, "BOOL": np.bool_, "COMPLEX64": np.complex64, "COMPLEX128": np.complex128,
}  # fmt: skip


@dataclass(frozen=True)
class Quantised:
    """How the integers of a tensor stand for real numbers.

    Attributes:
        scales: One, or one for each index of ``axis``.
        zeros: What stands for zero, likewise.
        axis: Which axis the scales belong to.
    """

    scales: np.ndarray[Any, Any]
    zeros: np.ndarray[Any, Any]
    axis: int

    def same(self, other: Quantised | None) -> bool:
        """Whether the integers of both mean the same."""
        return (
            other is not None
            and np.array_equal(self.scales, other.scales)
            and np.array_equal(self.zeros, other.zeros)
            and (len(self.scales) == 1 or self.axis == other.axis)
        )


@dataclass(frozen=True)
class Tensor:
    """A tensor of a graph.

    Attributes:
        name: What it is called.
        dtype: Of its elements.
        shape: Its sizes, ``None`` for those that vary.
        value: What it is, if that is part of the file.
        quantised: What its integers mean, if anything else.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]
    value: np.ndarray[Any, Any] | None
    quantised: Quantised | None


@dataclass(frozen=True)
class Operation:
    """An operator that is applied.

    Attributes:
        op: Its name in the schema.
        options: Its options, as the schema has them.
        inputs: Numbers of tensors; -1 for one that is left out.
        outputs: Numbers of tensors.
    """

    op: str
    options: Any
    inputs: Sequence[int]
    outputs: Sequence[int]


@dataclass(frozen=True)
class Graph:
    """A function of the file.

    Attributes:
        tensors: All of its tensors.
        operations: In the order in which they are run.
        inputs: Numbers of those that it takes.
        outputs: Numbers of those that it returns.
    """

    tensors: Sequence[Tensor]
    operations: Sequence[Operation]
    inputs: Sequence[int]
    outputs: Sequence[int]


def graphs_of(content: bytes) -> list[Graph]:
    """The functions of a file, the main one first.

    Raises:
        ModelFormatError: It is damaged.
    """
    try:
        model = lite_schema().ModelT.InitFromObj(lite_schema().Model.GetRootAs(content, 0))
        names = [lite_names("BuiltinOperator")[_code(each)] for each in model.operatorCodes]
        custom = [each.customCode for each in model.operatorCodes]
        names = [
            f"custom {tail.decode(errors='replace')}" if name == "CUSTOM" and tail else name
            for name, tail in zip(names, custom, strict=True)
        ]
        return [_graph(each, model.buffers, names) for each in model.subgraphs]
    except (struct.error, IndexError, TypeError, AttributeError, KeyError, ValueError) as error:
        raise ModelFormatError(f"it is no file of TensorFlow Lite, or a damaged one: {error}") from error


def _code(each: Any) -> int:
    return max(int(each.builtinCode), int(each.deprecatedBuiltinCode))


def _graph(graph: Any, buffers: Sequence[Any], names: Sequence[str]) -> Graph:
    operations = [
        Operation(names[each.opcodeIndex], each.builtinOptions, _list(each.inputs), _list(each.outputs))
        for each in _list(graph.operators)
    ]
    tensors = [_tensor(each, buffers) for each in _list(graph.tensors)]
    return Graph(tensors, operations, _list(graph.inputs), _list(graph.outputs))


def _list(values: Any) -> list[Any]:
    return [] if values is None else list(values)


def _tensor(tensor: Any, buffers: Sequence[Any]) -> Tensor:
    kind = lite_names("TensorType")[tensor.type]
    dtype = np.dtype(_TYPES.get(kind, object))
    signature = _list(tensor.shapeSignature) or _list(tensor.shape)
    shape = tuple(None if size < 0 else int(size) for size in signature)
    data = buffers[tensor.buffer].data
    value = None
    if data is not None and len(data):
        if dtype.kind == "O":
            raise ValueError(f"a constant of {kind}")
        value = np.frombuffer(bytes(bytearray(data)), dtype).reshape(_list(tensor.shape))
    name = tensor.name.decode(errors="replace") if tensor.name else ""
    return Tensor(name, dtype, shape, value, _quantised(tensor.quantization))


def _quantised(found: Any) -> Quantised | None:
    scales = [] if found is None else _list(found.scale)
    if not scales:
        return None
    zeros = _list(found.zeroPoint) or [0] * len(scales)
    return Quantised(np.array(scales, np.float32), np.array(zeros, np.int64), int(found.quantizedDimension))
