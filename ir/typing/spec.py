"""Type and shape of a value, as the file writes them and as onnx's own functions take them."""

from __future__ import annotations

from typing import NamedTuple

import onnx
import onnx_ir as ir


class Spec(NamedTuple):
    """Type and shape of a value as far as they are known."""

    type: ir.TypeProtocol | None
    shape: ir.Shape | None


UNKNOWN = Spec(None, None)


def written(value: ir.Value) -> Spec:
    """What the file says about a value."""
    if value.const_value is not None and value.is_initializer():
        return Spec(ir.TensorType(value.const_value.dtype), ir.Shape(value.const_value.shape.numpy()))
    return Spec(value.type, value.shape)


def to_proto(spec: Spec) -> onnx.TypeProto:
    """As onnx's functions take it; empty when nothing is known."""
    proto = onnx.TypeProto()
    if (carried := getattr(spec.type, "proto", None)) is not None:
        proto.CopyFrom(carried)  # a type that onnx_ir has no class for, as the reader keeps it
    elif spec.type is not None:
        ir.serde.serialize_type_into(proto, spec.type)
        if spec.shape is not None:
            ir.serde.serialize_shape_into(proto, spec.shape)
    return proto


def from_proto(proto: onnx.TypeProto) -> Spec:
    """As onnx's functions give it."""
    if proto.WhichOneof("value") is None:
        return UNKNOWN
    try:
        kind = ir.serde.deserialize_type_proto_for_type(proto)
    except ir.serde.SerdeError:
        return UNKNOWN  # a sequence of maps
    return Spec(kind, ir.serde.deserialize_type_proto_for_shape(proto))


def is_possible(spec: Spec) -> bool:
    """Whether no size is below 0."""
    return spec.shape is None or all(not isinstance(dim, int) or dim >= 0 for dim in spec.shape)


def possible(spec: Spec) -> Spec:
    """The same without sizes below 0, which onnx's inference gives to what does not fit, and crashes when given."""
    if spec.shape is None or is_possible(spec):
        return spec
    return Spec(spec.type, ir.Shape([None if isinstance(dim, int) and dim < 0 else dim for dim in spec.shape]))
