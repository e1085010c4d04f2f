"""Types and shapes of values, from protobuf to onnx_ir and back, without losing any."""

from __future__ import annotations

import onnx
import onnx_ir

from entrepot.ir.io.context import Context

_DTYPES = {member.value: member for member in onnx_ir.DataType}


class ProtoType(onnx_ir.TypeProtocol):
    """A type for which onnx_ir has no class (map, opaque, a sequence of unknown content), carried as it is.

    Args:
        proto: The type; not changed.
    """

    def __init__(self, proto: onnx.TypeProto) -> None:
        self.proto = onnx.TypeProto()
        self.proto.CopyFrom(proto)
        self.denotation = proto.denotation or None
        self.elem_type = onnx_ir.DataType.UNDEFINED
        self.dtype = onnx_ir.DataType.UNDEFINED

    @property
    def kind(self) -> str:
        """``"map"``, ``"opaque"``, ``"sequence"`` or ``"optional"``."""
        return (self.proto.WhichOneof("value") or "unknown").removesuffix("_type")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProtoType) and self.proto == other.proto

    def __hash__(self) -> int:
        return hash(self.kind)

    def __repr__(self) -> str:
        return f"ProtoType({self.kind})"


def dtype_of(context: Context, number: int) -> onnx_ir.DataType:
    """The element type of a number in the file."""
    dtype = _DTYPES.get(number)
    if dtype is None:
        raise context.error(f"unknown element type {number}", hint=f"known are 1 to {max(_DTYPES)}")
    context.dtypes.add(number)
    return dtype


def read_type(
    context: Context, proto: onnx.TypeProto, depth: int = 0
) -> tuple[onnx_ir.TypeProtocol | None, onnx_ir.Shape | None]:
    """Type and shape; the shape of a sequence or optional is that of its elements."""
    denotation = context.text(proto.denotation) or None
    if proto.HasField("tensor_type"):
        tensor = proto.tensor_type
        shape = _read_shape(context, tensor.shape) if tensor.HasField("shape") else None
        return onnx_ir.TensorType(dtype_of(context, tensor.elem_type), denotation=denotation), shape
    kind = proto.WhichOneof("value")
    if kind is None:
        return None, None
    if depth > context.limits.nesting:
        raise context.over(f"types are nested more than {context.limits.nesting} levels deep", "nesting")
    return _read_other_type(context, proto, kind, denotation, depth)


def _read_other_type(
    context: Context, proto: onnx.TypeProto, kind: str, denotation: str | None, depth: int
) -> tuple[onnx_ir.TypeProtocol, onnx_ir.Shape | None]:
    if kind == "sparse_tensor_type":
        sparse = proto.sparse_tensor_type
        shape = _read_shape(context, sparse.shape) if sparse.HasField("shape") else None
        return onnx_ir.SparseTensorType(dtype_of(context, sparse.elem_type), denotation=denotation), shape
    if kind in ("sequence_type", "optional_type"):
        element, shape = read_type(context, getattr(proto, kind).elem_type, depth + 1)
        wrapper = onnx_ir.SequenceType if kind == "sequence_type" else onnx_ir.OptionalType
        if element is not None:
            return wrapper(element, denotation=denotation), shape
    _check_carried(context, proto, depth)
    return ProtoType(proto), None


def _check_carried(context: Context, proto: onnx.TypeProto, depth: int) -> None:
    context.check_texts(proto)
    if proto.HasField("map_type"):
        dtype_of(context, proto.map_type.key_type)
        read_type(context, proto.map_type.value_type, depth + 1)


def _read_shape(context: Context, proto: onnx.TensorShapeProto) -> onnx_ir.Shape:
    key = proto.SerializeToString()
    shape = context.shapes.get(key)
    if shape is None:
        shape = context.shapes[key] = _new_shape(context, proto)
    return shape


def _new_shape(context: Context, proto: onnx.TensorShapeProto) -> onnx_ir.Shape:
    dims: list[int | onnx_ir.SymbolicDim] = []
    denotations: list[str | None] = []
    for dim in proto.dim:
        if dim.HasField("dim_value"):
            dims.append(_size(context, dim.dim_value, len(dims)))
        else:
            dims.append(onnx_ir.SymbolicDim(context.text(dim.dim_param) if dim.HasField("dim_param") else None))
        denotations.append(context.text(dim.denotation) or None)
    if len(dims) > context.limits.dims:
        raise context.over(f"a shape of {len(dims)} dimensions", "dims")
    return onnx_ir.Shape(dims, denotations=denotations, frozen=True)


def _size(context: Context, size: int, axis: int) -> int | onnx_ir.SymbolicDim:
    if size == -1:  # several older exporters wrote this for an unknown size, and onnxruntime reads it so
        return onnx_ir.SymbolicDim(None)
    if size < 0:
        raise context.error(f"dimension {axis} of a shape is {size}", hint="a dynamic axis has a name or no value")
    return size


def write_type(proto: onnx.TypeProto, type_: onnx_ir.TypeProtocol | None, shape: onnx_ir.Shape | None) -> None:
    """Write type and shape into an empty ``TypeProto``."""
    if type_ is None:
        return  # a shape has no place to go without a type
    if type(type_) is not onnx_ir.TensorType and isinstance(type_, ProtoType):  # isinstance with a protocol is slow
        proto.CopyFrom(type_.proto)
        return
    if type_.denotation:
        proto.denotation = type_.denotation
    if type(type_) is onnx_ir.TensorType:
        _write_tensor_type(proto.tensor_type, type_.dtype, shape)
    elif isinstance(type_, onnx_ir.SequenceType):
        proto.sequence_type.SetInParent()
        write_type(proto.sequence_type.elem_type, type_.elem_type, shape)
    elif isinstance(type_, onnx_ir.OptionalType):
        proto.optional_type.SetInParent()
        write_type(proto.optional_type.elem_type, type_.elem_type, shape)
    else:
        sparse = isinstance(type_, onnx_ir.SparseTensorType)
        _write_tensor_type(proto.sparse_tensor_type if sparse else proto.tensor_type, type_.dtype, shape)


def _write_tensor_type(
    proto: onnx.TypeProto.Tensor | onnx.TypeProto.SparseTensor, dtype: onnx_ir.DataType, shape: onnx_ir.Shape | None
) -> None:
    proto.elem_type = dtype.value
    if shape is not None:
        _write_shape(proto.shape, shape)


def _write_shape(proto: onnx.TensorShapeProto, shape: onnx_ir.Shape) -> None:
    proto.SetInParent()  # rank 0 is a shape too
    for axis, dim in enumerate(shape):
        target = proto.dim.add()
        denotation = shape.get_denotation(axis)
        if denotation:
            target.denotation = denotation
        if isinstance(dim, int):
            target.dim_value = dim
        elif dim.value is not None:
            target.dim_param = str(dim.value)
