"""What is known of a value before anything runs: kind, element type, shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from entrepot.ir.upstream import INFERENCE_ERRORS

if TYPE_CHECKING:
    from entrepot.runtime.plan import Step

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


def numpy_dtype(dtype: ir.DataType) -> np.dtype[Any]:
    """The NumPy (or ml_dtypes) type that holds an ONNX element type; strings are objects."""
    return np.dtype(object) if dtype == ir.DataType.STRING else np.dtype(dtype.numpy())


def of_array(array: Any) -> Type | None:
    """The type of a constant; ``None`` for what is not an array."""
    if not isinstance(array, np.ndarray):
        return None
    dtype = ir.DataType.STRING if array.dtype == object else ir.DataType.from_numpy(array.dtype)
    return Type("tensor", dtype, tuple(array.shape))


def of_tensor(tensor: ir.TensorProtocol) -> np.ndarray[Any, Any]:
    """What a tensor of a file holds, as kernels take it: onnx_ir gives strings as the bytes that they are stored as."""
    array = tensor.numpy()
    if array.dtype.kind not in "OS":
        return array
    texts = [text.decode(errors="surrogateescape") if isinstance(text, bytes) else text for text in array.reshape(-1)]
    return np.array(texts, object).reshape(array.shape)


def array_of(result: Any) -> np.ndarray[Any, Any]:
    """A kernel's result as an array: NumPy makes scalars of 0-d results, and of 0-d strings Python's own."""
    return np.array(result, dtype=object) if isinstance(result, str) else np.asarray(result)


def of_value(value: ir.Value) -> Type | None:
    """What the graph declares about a value."""
    if value.type is None:
        return None
    shape = None if value.shape is None else tuple(d if isinstance(d, int) else d.value for d in value.shape)
    return _of_ir(value.type, shape)


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
    element, _ = to_ir(known.element or Type())
    return (ir.SequenceType if known.kind == "sequence" else ir.OptionalType)(element), None


def to_proto(known: Type) -> onnx.TypeProto:
    """The same type in ONNX's own words, as shape inference takes it."""
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


SMALL = 1024
"""Constants of up to this many elements are shown to shape inference: shapes, axes, repeats."""


def infer(step: Step) -> list[Type | None]:
    """The types of a step's outputs by its schema; ``None`` where the schema cannot say."""
    unknown: list[Type | None] = [None] * len(step.outputs)
    schema = step.schema
    if schema is None or step.blocks or any(v is not None and v.type is None for v in step.inputs):
        return unknown
    names = ["" if value is None else f"i{n}" for n, value in enumerate(step.inputs)]
    given = [(name, value) for name, value in zip(names, step.inputs, strict=True) if value is not None]
    known = {name: to_proto(value.type) for name, value in given if value.type is not None}
    data = {
        name: onnx.numpy_helper.from_array(value.constant)
        for name, value in given
        if isinstance(value.constant, np.ndarray) and value.constant.size <= SMALL
    }
    imports = [onnx.helper.make_opsetid(step.domain, step.opset)]
    try:
        node = proto_of(step, names)
        found = onnx.shape_inference.infer_node_outputs(schema, node, known, data, opset_imports=imports)
    except (*INFERENCE_ERRORS, AssertionError):  # the last is of onnx.helper, for an attribute of another type
        return unknown  # an ill-typed node is reported when it runs, with its values
    return [from_proto(found[name]) if name in found else None for name in node.output]


def proto_of(step: Step, names: list[str]) -> onnx.NodeProto:
    """A step as a node whose inputs are called ``names`` and whose outputs ``o0``, ``o1``, ..."""
    outputs = ["" if value is None else f"o{n}" for n, value in enumerate(step.outputs)]
    node = onnx.helper.make_node(step.op_type, names, outputs, name=step.name, domain=step.domain)
    node.attribute.extend(_attribute(step, name, value) for name, value in step.attributes.items())
    node.attribute.extend(onnx.helper.make_attribute(name, graph) for name, graph in step.graphs.items())
    return node


def _attribute(step: Step, name: str, value: Any) -> onnx.AttributeProto:
    declared = None if step.schema is None else step.schema.attributes.get(name)
    if isinstance(value, np.ndarray):
        value = onnx.numpy_helper.from_array(value, name)
    elif isinstance(value, Type):
        value = to_proto(value)
    kind = None if declared is None else int(declared.type.value)  # type: ignore[attr-defined] # onnx's stub lacks it
    return onnx.helper.make_attribute(name, value, attr_type=kind)


def of_attribute(value: ir.TypeAndShape) -> Type | None:
    """The type that an attribute such as ``Optional``'s ``type`` holds."""
    shape = None if value.shape is None else tuple(d if isinstance(d, int) else d.value for d in value.shape)
    return None if value.type is None else _of_ir(value.type, shape)
