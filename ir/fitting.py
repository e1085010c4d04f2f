"""Nodes whose attributes or constants do not fit their operands, where onnx's own shape inference does not look."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir

from entrepot.ir.errors import describe_node
from entrepot.ir.inference import scope_types
from entrepot.ir.model import Model
from entrepot.ir.typing.query import Types

_AXES = {
    "QuantizeLinear": ("axis",),
    "DequantizeLinear": ("axis",),
    "GatherElements": ("axis",),
    "ScatterElements": ("axis",),
    "LayerNormalization": ("axis",),
    "RMSNormalization": ("axis",),
    "LpNormalization": ("axis",),
    "ReverseSequence": ("batch_axis", "time_axis"),
}
_RECURRENT = frozenset({"RNN", "GRU", "LSTM"})


def misfit(model: Model) -> str:
    """What does not fit, and where; empty if nothing is found."""
    for scope, types in scope_types(model.ir).items():
        for node in scope.all_nodes():
            problem = _size_problem(node, types)
            if not problem and not node.domain:
                problem = _axis_problem(node, types) or _length_problem(node, types)
            if problem:
                return f"{describe_node(node, model.opset)}: {problem}"
    return ""


def _size_problem(node: onnx_ir.Node, types: Types) -> str:
    if all(value.shape is not None and value.shape.is_static() for value in node.outputs):
        return ""  # what the file states is compared with what is inferred
    for name, spec in types.impossible(node).items():
        return f"'{name}' would have the shape {tuple(spec.shape or ())}"
    return ""


def _axis_problem(node: onnx_ir.Node, types: Types) -> str:
    names = _AXES.get(node.op_type, ())
    shape = types.shape(node.inputs[0]) if names else None
    if shape is None:
        return ""
    if node.op_type in ("QuantizeLinear", "DequantizeLinear") and not _is_per_axis(types.shape(node.inputs[1])):
        return ""  # a single scale has no axis
    for name, axis in _given(node, names):
        if not -len(shape) <= axis < len(shape):
            return f"{name} {axis} is out of range for an input of rank {len(shape)}"
    return ""


def _is_per_axis(scale: onnx_ir.Shape | None) -> bool:
    return scale is not None and len(scale) > 0 and list(scale) != [1]


def _given(node: onnx_ir.Node, names: Iterable[str]) -> Iterable[tuple[str, int]]:
    for name in names:
        if name in node.attributes and not node.attributes[name].is_ref():
            yield name, node.attributes[name].as_int()


def _length_problem(node: onnx_ir.Node, types: Types) -> str:
    if node.op_type not in _RECURRENT or len(node.inputs) < 5:
        return ""
    lengths, shape = types.known.array(node.inputs[4]), types.shape(node.inputs[0])
    time = None if shape is None or len(shape) != 3 else shape[1 if dict(_given(node, ["layout"])).get("layout") else 0]
    if lengths is None or not isinstance(time, int) or not lengths.size:
        return ""
    fits = lengths.min() >= 0 and lengths.max() <= time
    return "" if fits else f"sequence lengths {lengths.tolist()[:8]} do not fit data of {time} steps"
