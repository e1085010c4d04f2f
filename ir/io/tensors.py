"""Tensors of a file: sizes are checked against the bytes present before anything is allocated."""

from __future__ import annotations

import math

import onnx
import onnx_ir
from onnx import TensorProto as T

from entrepot.ir.io.bulk import TICKET
from entrepot.ir.io.context import Context
from entrepot.ir.io.external import DataFolder, array_of
from entrepot.ir.io.sparse import SparseTensor, check_sparse
from entrepot.ir.io.value_types import dtype_of

_FIELDS: dict[int, str] = {
    **dict.fromkeys((T.FLOAT, T.COMPLEX64), "float_data"),
    **dict.fromkeys((T.DOUBLE, T.COMPLEX128), "double_data"),
    **dict.fromkeys((T.UINT32, T.UINT64), "uint64_data"),
    T.INT64: "int64_data",
    T.STRING: "string_data",
}
"""Which typed field holds the values; ``int32_data`` for every type not named."""

_DATA_FIELDS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")

_LARGEST = (1 << 63) // 32
"""Elements of an array of NumPy, whose strides are 64 bits wide."""


class TensorReader:
    """Makes onnx_ir tensors, independent of the proto they came from.

    Args:
        context: Place and budget.
        folder: Where external data lies.
    """

    def __init__(self, context: Context, folder: DataFolder) -> None:
        self._context = context
        self._folder = folder

    def read(self, proto: onnx.TensorProto) -> onnx_ir.TensorProtocol:
        """The tensor; its data is checked to be all there."""
        context = self._context
        name = context.text(proto.name)
        dims = list(proto.dims)
        size = self._size(dims, name)
        dtype = dtype_of(context, proto.data_type)
        if dtype is onnx_ir.DataType.UNDEFINED:
            raise context.error("tensor without an element type", value=name)
        if proto.HasField("segment"):
            raise context.error("tensor in segments", value=name, hint="no writer produces them; save the model again")
        if dtype is onnx_ir.DataType.STRING:
            return self._strings(proto, dims, size, name)
        nbytes = (size * dtype.bitwidth + 7) // 8
        context.count_bytes(nbytes, name)
        if proto.data_location == T.EXTERNAL:
            return self._folder.tensor(proto, dtype, onnx_ir.Shape(dims, frozen=True), nbytes, name)
        raw: bytes | memoryview | None = None
        if proto.HasField("raw_data"):
            raw = proto.raw_data  # asked for once: each time makes a copy
            raw = self._context.bulk.get(raw, raw) if len(raw) == TICKET else raw
        if raw is not None and (raw or not nbytes):  # some writers leave an empty message behind
            return self._raw(proto, raw, dims, dtype, nbytes, name)
        return self._typed(proto, dtype, size, name)

    def read_sparse(self, proto: onnx.SparseTensorProto) -> SparseTensor:
        """A sparse tensor; its indices are checked to lie inside it."""
        context = self._context
        name = context.text(proto.values.name)
        for part in (proto.values, proto.indices):
            if part.data_location == T.EXTERNAL or part.data_type == T.STRING:
                raise context.error("sparse tensor of strings or with external data", value=name)
            self.read(part)
        size = self._size(list(proto.dims), name) * dtype_of(context, proto.values.data_type).bitwidth // 8
        if size > context.limits.dense_bytes:
            raise context.over(f"sparse tensor '{name}' would have {size} bytes when dense", "dense_bytes")
        check_sparse(context, proto, name)
        own = onnx.SparseTensorProto()
        own.CopyFrom(proto)
        return SparseTensor(own, self.read(own.values))

    def _size(self, dims: list[int], name: str) -> int:
        if len(dims) > self._context.limits.dims:
            raise self._context.over(f"tensor '{name}' has {len(dims)} dimensions", "dims")
        if any(dim < 0 for dim in dims):
            raise self._context.error(f"tensor with negative dims {tuple(dims)}", value=name)
        if 0 in dims and math.prod(filter(None, dims)) > _LARGEST:  # no array can have such dims, although it is empty
            raise self._context.error(f"tensor with absurd dims {tuple(dims)}", value=name)
        return math.prod(dims)

    def _raw(
        self,
        proto: onnx.TensorProto,
        raw: bytes | memoryview,
        dims: list[int],
        dtype: onnx_ir.DataType,
        nbytes: int,
        name: str,
    ) -> onnx_ir.TensorProtocol:
        if len(raw) != nbytes:
            raise self._context.error(
                f"{len(raw)} bytes of data, but {dtype.name} of dims {tuple(dims)} needs {nbytes}", value=name
            )
        self._only_data(proto, "raw_data", name)
        if dtype.bitwidth < 8:
            return _own_proto(proto, raw)
        return onnx_ir.Tensor(
            array_of(raw, dtype, tuple(dims)), dtype, name=name,
            doc_string=self._context.text(proto.doc_string) or None,
            metadata_props=self._context.texts(proto.metadata_props) or None,
        )  # fmt: skip

    def _typed(self, proto: onnx.TensorProto, dtype: onnx_ir.DataType, size: int, name: str) -> onnx_ir.TensorProtocol:
        field = _FIELDS.get(proto.data_type, "int32_data")
        found = len(getattr(proto, field))
        if dtype.name.startswith("COMPLEX"):
            expected = 2 * size
        elif dtype.bitwidth in (2, 4):
            expected = (size * dtype.bitwidth + 7) // 8  # packed, a byte in each integer
        else:
            expected = size
        if found != expected:
            raise self._context.error(
                f"{found} values in {field}, but {dtype.name} of dims {tuple(proto.dims)} needs {expected}", value=name
            )
        self._only_data(proto, field, name)
        self._context.text(proto.doc_string)
        self._context.texts(proto.metadata_props)
        return _own_proto(proto)

    def _strings(self, proto: onnx.TensorProto, dims: list[int], size: int, name: str) -> onnx_ir.TensorProtocol:
        if proto.data_location == T.EXTERNAL or proto.HasField("raw_data"):
            raise self._context.error("tensor of strings outside string_data", value=name)
        if len(proto.string_data) != size:
            message = f"{len(proto.string_data)} strings, but dims {tuple(dims)} need {size}"
            raise self._context.error(message, value=name)
        self._only_data(proto, "string_data", name)
        return onnx_ir.StringTensor(
            list(proto.string_data), shape=onnx_ir.Shape(dims), name=name,
            doc_string=self._context.text(proto.doc_string) or None,
            metadata_props=self._context.texts(proto.metadata_props) or None,
        )  # fmt: skip

    def _only_data(self, proto: onnx.TensorProto, field: str, name: str) -> None:
        for other in _DATA_FIELDS:
            if other != field and len(getattr(proto, other)):
                raise self._context.error(f"tensor with data in {field} and in {other}", value=name)


def _own_proto(proto: onnx.TensorProto, raw: bytes | memoryview | None = None) -> onnx_ir.TensorProtocol:
    """A tensor over a copy: a view into the proto would keep the whole file in memory."""
    own = onnx.TensorProto()
    own.CopyFrom(proto)
    if raw is not None:
        own.raw_data = bytes(raw)
    return onnx_ir.serde.TensorProtoTensor(own)
