"""What an operator's schema implies for the outputs of one node: by its type variables, or onnx's inference."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable

import onnx
import onnx_ir as ir

from entrepot.ir.opset.schemas import histories, schema
from entrepot.ir.typing.shown import Shown
from entrepot.ir.typing.spec import Spec, from_proto, to_proto
from entrepot.ir.upstream import INFERENCE_ERRORS

_SHAPED_BY = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0}
"""Operators whose output has the shape that an input lists; onnx infers nothing where that is not constant."""

_Option = onnx.defs.OpSchema.FormalParameterOption
_ONLY_TYPES = {"tensor(bool)": ir.DataType.BOOL, "tensor(int64)": ir.DataType.INT64}


@functools.cache
def type_sources(domain: str, op_type: str, version: int) -> dict[int, int | ir.TypeProtocol]:
    """Output index to the index of an input of the same type, or to its only type."""
    known = schema(domain, op_type, version)
    inputs = {parameter.type_str: index for index, parameter in reversed(list(enumerate(known.inputs)))}
    single = {
        item.type_param_str: item.allowed_type_strs[0]
        for item in known.type_constraints
        if len(item.allowed_type_strs) == 1
    }
    sources: dict[int, int | ir.TypeProtocol] = {}
    for index, output in enumerate(known.outputs):
        if output.option == _Option.Variadic and not output.is_homogeneous:
            continue
        if output.type_str in inputs and known.inputs[inputs[output.type_str]].is_homogeneous:
            sources[index] = inputs[output.type_str]
        elif (only := single.get(output.type_str, output.type_str)) in _ONLY_TYPES:
            sources[index] = ir.TensorType(_ONLY_TYPES[only])
    return sources


def cast_target(to: ir.Attr) -> ir.TypeProtocol | None:
    """The type that a Cast converts to, if it is valid; before version 6 it was a name."""
    if isinstance(to.value, int):
        return ir.TensorType(ir.DataType(to.value)) if to.value in _NUMBERS else None
    name = str(to.value).upper()
    return ir.TensorType(ir.DataType[name]) if name in ir.DataType.__members__ else None


_NUMBERS = frozenset(int(member) for member in ir.DataType)


def inferred(node: ir.Node, version: int, shown: Shown) -> dict[str, Spec]:
    """What onnx's shape inference says about each output, by name.

    Args:
        node: The node.
        version: The since-version that gives it its meaning.
        shown: What is known of its inputs.
    """
    types: dict[str, onnx.TypeProto] = {}
    data: dict[str, onnx.TensorProto] = {}
    for value, spec, array in zip(node.inputs, *shown, strict=True):
        if value is None or spec is None:
            continue
        types[value.name or ""] = to_proto(spec)
        if array is not None:
            data[value.name or ""] = onnx.numpy_helper.from_array(array)
    try:
        proto = ir.serde.serialize_node(node)
    except ir.serde.SerdeError:
        return {}  # text that is not UTF-8
    # a node on its way down may hold element types that only newer versions list
    candidates = (version, histories().get((node.domain, node.op_type), (version,))[-1])
    schemas = [schema(node.domain, node.op_type, candidate) for candidate in dict.fromkeys(candidates)]
    outputs = infer_outputs(schemas, proto, types, data)
    return {name: _with_rank(node, from_proto(item), shown) for name, item in outputs.items()}


def infer_outputs(
    schemas: Iterable[onnx.defs.OpSchema],
    node: onnx.NodeProto,
    types: dict[str, onnx.TypeProto],
    data: dict[str, onnx.TensorProto],
    opset_imports: list[onnx.OperatorSetIdProto] | None = None,
) -> dict[str, onnx.TypeProto]:
    """What the first schema that takes the node implies for its outputs, by name; nothing if none does.

    The one place that asks onnx's inference, and knows where it errs.

    Args:
        schemas: Definitions of the operator.
        node: The node.
        types: What is known of its inputs, by name.
        data: The values of inputs that are known, by name.
        opset_imports: The versions in force, for operators that are made of others.
    """
    for candidate in schemas:
        try:
            found = onnx.shape_inference.infer_node_outputs(candidate, node, types, data, opset_imports=opset_imports)
        except INFERENCE_ERRORS:
            continue
        if node.op_type == "DFT" and _is_half_spectrum(node):
            for kind in found.values():
                _forget_sizes(kind)
        return found
    return {}


def _with_rank(node: ir.Node, found: Spec, shown: Shown) -> Spec:
    """What was inferred, with at least the rank where the node makes a shape out of a vector of known length."""
    perm = node.attributes.get("perm")
    if found.shape is None and node.op_type == "Transpose" and perm is not None and not perm.is_ref():
        return Spec(found.type, ir.Shape([None] * len(perm.as_ints())))
    if node.op_type == "Reshape" and found.shape is not None and len(shown.specs) > 1:
        return Spec(found.type, _with_rest(node, found.shape, shown))
    if found.shape is not None or node.op_type not in _SHAPED_BY:
        return found
    shapes = [spec.shape for spec in shown.specs if spec is not None]
    index = _SHAPED_BY[node.op_type]  # Reshape 1 has an attribute there
    wanted = shapes[index] if index < len(shapes) == len(node.inputs) else None
    if wanted is None or len(wanted) != 1 or not isinstance(wanted[0], int):
        return found
    least = shapes[0] if node.op_type == "Expand" else ()
    return found if least is None else Spec(found.type, ir.Shape([None] * max(wanted[0], len(least))))


def _with_rest(node: ir.Node, found: ir.Shape, shown: Shown) -> ir.Shape:
    """The shape, with the size that a Reshape leaves over (-1) where that is one that varies; onnx knows numbers."""
    given, target = shown.specs[0], shown.arrays[1]
    if given is None or given.shape is None or target is None:
        return found
    if target.ndim != 1 or target.dtype.kind != "i" or len(target) != len(found):  # nothing that fits
        return found
    if "allowzero" in node.attributes and 0 in target:  # which is no size of the operand's then
        return found
    wanted = [given.shape[at] if size == 0 and at < len(given.shape) else int(size) for at, size in enumerate(target)]
    (before, names), (after, others) = _factors(given.shape), _factors(dim for dim in wanted if dim != -1)
    rest = names - others
    if wanted.count(-1) != 1 or before != after or not before or others - names or rest.total() != 1 or None in rest:
        return found
    name = next(iter(rest))
    return ir.Shape([ir.SymbolicDim(name) if size == -1 else dim for size, dim in zip(wanted, found, strict=True)])


def _factors(dims: Iterable[object]) -> tuple[int, Counter[str | None]]:
    """Of how many elements numbers speak, and which names there are besides."""
    dims = list(dims)
    named = Counter(dim.value for dim in dims if isinstance(dim, ir.SymbolicDim))
    return math.prod(dim for dim in dims if isinstance(dim, int)), named


def _is_half_spectrum(node: onnx.NodeProto) -> bool:
    """Whether a DFT goes back from half a spectrum: onnx 1.23 gives the result only the half's length."""
    given = {attribute.name: attribute.i for attribute in node.attribute}
    return bool(given.get("inverse") and given.get("onesided"))


def _forget_sizes(kind: onnx.TypeProto) -> None:
    for dim in kind.tensor_type.shape.dim:
        dim.Clear()
