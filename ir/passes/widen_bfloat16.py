"""Graphs whose bfloat16 onnxruntime computes, too."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from entrepot.ir.passes.graphs import typed_graphs
from entrepot.ir.typing.query import Types

_NARROW, _WIDE = ir.DataType.BFLOAT16, ir.DataType.FLOAT

_HAD = frozenset({
    "Identity", "Reshape", "Transpose", "Concat", "Slice", "Gather", "GatherElements", "GatherND", "ScatterND",
    "ScatterElements", "Squeeze", "Unsqueeze", "Flatten", "Split", "Shape", "Cast", "CastLike", "IsNaN", "Sign",
    "If", "Loop", "Scan",
})  # fmt: skip
"""What onnxruntime (1.31) has for bfloat16 on a processor; the tests of this pass say if that changes."""


class WidenBfloat16(ir.passes.InPlacePass):
    """Compute in float32 what onnxruntime has no operator of bfloat16 for; what is kept stays as narrow as it was.

    Before: ``y = Softmax(x)``. After: ``y = Cast(Softmax(Cast(x)))``.
    Operators that move elements, inputs, outputs and weights keep their type.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        modified = False
        for graph, types in list(typed_graphs(model)):
            if isinstance(graph, ir.Graph):
                modified |= _widened(graph, types)
        return ir.passes.PassResult(model, modified=modified)


def _widened(graph: ir.Graph, types: Types) -> bool:
    casts: dict[ir.Value, ir.Value] = {}
    chosen = [(node, _narrow(node.inputs, types), _narrow(node.outputs, types)) for node in graph if _lacked(node)]
    chosen = [each for each in chosen if each[1]]
    for node, inputs, outputs in chosen:
        for at in inputs:
            value = node.inputs[at]
            assert value is not None
            if value not in casts:
                casts[value] = _cast(graph, value, _WIDE, before=node)
            node.replace_input_with(at, casts[value])
        for at in outputs:
            _rounded(graph, node, node.outputs[at])
    return bool(chosen)


def _lacked(node: ir.Node) -> bool:
    return not node.domain and (node.op_type not in _HAD or node.attributes.get_string("reduction", "none") != "none")


def _narrow(values: Sequence[ir.Value | None], types: Types) -> list[int]:
    return [at for at, value in enumerate(values) if value is not None and types.dtype(value) is _NARROW]


def _rounded(graph: ir.Graph, node: ir.Node, value: ir.Value) -> None:
    """Let everything that reads a result read it rounded, an output of the graph under its name."""
    value.type = ir.TensorType(_WIDE)
    narrow = _cast(graph, value, _NARROW, after=node)
    maker = narrow.producer()
    for use in [use for use in value.uses() if use.node is not maker]:
        use.node.replace_input_with(use.idx, narrow)
    for at, output in enumerate(graph.outputs):
        if output is value:
            narrow.name, value.name = value.name, value.name and f"{value.name}.{_WIDE.name.lower()}"
            graph.outputs[at] = narrow


def _cast(
    graph: ir.Graph, value: ir.Value, to: ir.DataType, *, before: ir.Node | None = None, after: ir.Node | None = None
) -> ir.Value:
    node = ir.node("Cast", [value], {"to": int(to)})
    made = node.outputs[0]
    made.shape, made.type = value.shape, ir.TensorType(to)
    made.name = value.name and f"{value.name}.{to.name.lower()}"
    if before is not None:
        graph.insert_before(before, node)
    elif after is not None:
        graph.insert_after(after, node)
    return made
