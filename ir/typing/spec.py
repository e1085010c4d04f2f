"""Type and shape of a value, as the file writes them and as onnx's own functions take them."""

from __future__ import annotations

from typing import NamedTuple

import onnx
import onnx_ir as ir

from entrepot.ir.io.value_types import write_type


class Spec(NamedTuple):
    """Type and shape of a value as far as they are known."""

    type: ir.TypeProtocol | None
    shape: ir.Shape | None


UNKNOWN = Spec(None, None)

_DTYPES = {member.value: member for member in ir.DataType}


def written(value: ir.Value) -> Spec:
    """What the file says about a value."""
    if value.const_value is not None and value.is_initializer():
        return Spec(ir.TensorType(value.const_value.dtype), ir.Shape(value.const_value.shape.numpy()))
    return Spec(value.type, value.shape)


def to_proto(spec: Spec) -> onnx.TypeProto:
    """As onnx's functions take it; empty when nothing is known."""
    proto = onnx.TypeProto()
    write_type(proto, spec.type, spec.shape)
    return proto


def from_proto(proto: onnx.TypeProto) -> Spec:
    """As onnx's functions give it."""
    if (form := proto.WhichOneof("value")) is None:
        return UNKNOWN
    if form == "tensor_type" and proto.tensor_type.elem_type in _DTYPES and not proto.denotation:
        tensor = proto.tensor_type
        shape = ir.Shape([_dim(dim) for dim in tensor.shape.dim], frozen=True) if tensor.HasField("shape") else None
        return Spec(ir.TensorType(_DTYPES[tensor.elem_type]), shape)
    try:
        kind = ir.serde.deserialize_type_proto_for_type(proto)
    except ir.serde.SerdeError:
        return UNKNOWN  # a sequence of maps
    return Spec(kind, ir.serde.deserialize_type_proto_for_shape(proto))


def _dim(dim: onnx.TensorShapeProto.Dimension) -> int | ir.SymbolicDim:
    if dim.HasField("dim_value"):
        return dim.dim_value
    return ir.SymbolicDim(dim.dim_param if dim.HasField("dim_param") else None)


def is_possible(spec: Spec) -> bool:
    """Whether no size is below 0."""
    return spec.shape is None or all(not isinstance(dim, int) or dim >= 0 for dim in spec.shape)


def possible(spec: Spec) -> Spec:
    """The same without sizes below 0, which onnx's inference gives to what does not fit, and crashes when given."""
    if spec.shape is None or is_possible(spec):
        return spec
    return Spec(spec.type, ir.Shape([None if isinstance(dim, int) and dim < 0 else dim for dim in spec.shape]))
