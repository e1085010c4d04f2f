"""Types as plain data, as plans hold them and written source spells them: immutable, comparable, of Python objects."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from entrepot.ir.typing.spec import Spec

Dims: TypeAlias = "tuple[int | str | None, ...]"


@dataclass(frozen=True)
class Type:
    """The type of a value, with everything unknown as ``None``.

    Attributes:
        kind: Tensors carry ``dtype`` and ``shape``; sequences and optionals carry ``element``.
        dtype: ONNX element type.
        shape: One entry per axis: a size, a symbol, or ``None``; ``None`` for an unknown rank.
        element: Type of the members of a sequence, or of what an optional may hold.
    """

    kind: Literal["tensor", "sequence", "optional", "sparse"] = "tensor"
    dtype: ir.DataType | None = None
    shape: Dims | None = None
    element: Type | None = None

    @property
    def numpy(self) -> np.dtype[Any] | None:
        """The NumPy (or ml_dtypes) element type of a tensor; ``None`` when unknown."""
        return None if self.dtype is None else numpy_dtype(self.dtype)


def nbytes(dtype: ir.DataType | None, shape: Iterable[object] | None) -> float:
    """Bytes of a tensor; infinite where its type does not tell, as that of strings never does."""
    if dtype in (None, ir.DataType.UNDEFINED, ir.DataType.STRING) or shape is None:
        return math.inf
    sizes = [dim if isinstance(dim, int) else math.inf for dim in shape]
    return 0.0 if 0 in sizes else math.prod(sizes) * dtype.bitwidth / 8


def numpy_dtype(dtype: ir.DataType) -> np.dtype[Any]:
    """The NumPy (or ml_dtypes) type that holds an ONNX element type; strings are objects."""
    return np.dtype(object) if dtype == ir.DataType.STRING else np.dtype(dtype.numpy())


def of_array(array: Any) -> Type | None:
    """The type of a constant; ``None`` for what is not an array."""
    if not isinstance(array, np.ndarray):
        return None
    dtype = ir.DataType.STRING if array.dtype == object else ir.DataType.from_numpy(array.dtype)
    return Type("tensor", dtype, tuple(array.shape))


def of_value(value: ir.Value) -> Type | None:
    """What the graph declares about a value."""
    return of_spec(Spec(value.type, value.shape))


def of_spec(spec: Spec) -> Type | None:
    """What was found out about a value."""
    if spec.type is None:
        return None
    shape = None if spec.shape is None else tuple(d if isinstance(d, int) else d.value for d in spec.shape)
    return _of_ir(spec.type, shape)


def _of_ir(declared: Any, shape: Dims | None) -> Type | None:
    if isinstance(declared, ir.TensorType):
        known = declared.dtype != ir.DataType.UNDEFINED
        return Type("tensor", declared.dtype if known else None, shape)
    if isinstance(declared, ir.SparseTensorType):
        return Type("sparse", declared.dtype, shape)
    if not isinstance(declared, ir.SequenceType | ir.OptionalType):
        return None  # a map, or an opaque type: nothing is known of it
    kind: Literal["sequence", "optional"] = "sequence" if isinstance(declared, ir.SequenceType) else "optional"
    return Type(kind, element=_of_ir(declared.elem_type, None))


def to_ir(known: Type) -> tuple[Any, ir.Shape | None]:
    """The same type as onnx_ir holds it: the type, and the shape of a tensor."""
    if known.kind == "tensor":
        shape = None if known.shape is None else ir.Shape(known.shape)
        return ir.TensorType(known.dtype or ir.DataType.UNDEFINED), shape
    if known.kind == "sparse":
        return ir.SparseTensorType(known.dtype or ir.DataType.UNDEFINED), None
    element, _ = to_ir(known.element or Type())
    return (ir.SequenceType if known.kind == "sequence" else ir.OptionalType)(element), None


def to_proto(known: Type) -> onnx.TypeProto:
    """The same type in ONNX's own words, as shape inference takes it; without a detour, as every step asks for it."""
    if known.kind == "tensor":
        return onnx.helper.make_tensor_type_proto(int(known.dtype or 0), known.shape)
    element = to_proto(known.element or Type())
    make = onnx.helper.make_sequence_type_proto if known.kind == "sequence" else onnx.helper.make_optional_type_proto
    return make(element)


def from_proto(proto: onnx.TypeProto) -> Type | None:
    """The other way round; ``None`` when the proto says nothing."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        tensor = proto.tensor_type
        shape = tuple(_dim(dim) for dim in tensor.shape.dim) if tensor.HasField("shape") else None
        return Type("tensor", ir.DataType(tensor.elem_type) if tensor.elem_type else None, shape)
    if kind in ("sequence_type", "optional_type"):
        return Type(
            "sequence" if kind == "sequence_type" else "optional", element=from_proto(getattr(proto, kind).elem_type)
        )
    return None


def _dim(dim: Any) -> int | str | None:
    """A size, or a symbol; inference gives sizes below 0 to what does not fit, and crashes when it is given them."""
    if not dim.HasField("dim_value"):
        return dim.dim_param or None
    return dim.dim_value if dim.dim_value >= 0 else None


def of_attribute(value: ir.TypeAndShape) -> Type | None:
    """The type that an attribute such as ``Optional``'s ``type`` holds."""
    shape = None if value.shape is None else tuple(d if isinstance(d, int) else d.value for d in value.shape)
    return None if value.type is None else _of_ir(value.type, shape)
