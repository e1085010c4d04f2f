"""Models whose bfloat16 onnxruntime computes, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import onnx_ir as ir

from entrepot.ir.passes.casting import cast_after, cast_before
from entrepot.ir.passes.graphs import typed_graphs
from entrepot.ir.typing.query import Types

_NARROW, _WIDE = ir.DataType.BFLOAT16, ir.DataType.FLOAT

_HAD = frozenset({
    "Identity", "Reshape", "Transpose", "Concat", "Slice", "Gather", "GatherElements", "GatherND", "ScatterND",
    "ScatterElements", "Squeeze", "Unsqueeze", "Flatten", "Split", "Shape", "Cast", "CastLike", "IsNaN", "Sign",
    "If", "Loop", "Scan",
})  # fmt: skip
"""What onnxruntime (1.31) has for bfloat16 on a processor; the tests of this pass say if that changes."""

_FROM_SEQUENCES = frozenset({"SequenceAt", "ConcatFromSequence"})


class WidenBfloat16(ir.passes.InPlacePass):
    """Compute in float32 what onnxruntime has no operator of bfloat16 for; what is kept stays as narrow as it was.

    Before: ``y = Softmax(x)``. After: ``y = Cast(Softmax(Cast(x)))``.
    Operators that move elements, inputs, outputs and weights keep their type. Sequences have no tensors of bfloat16 in
    ONNX: theirs become float32.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        known = list(typed_graphs(model))
        chosen = [(graph, _chosen(graph, types)) for graph, types in known]  # before a type changes
        for graph, types in known:
            _retyped(graph, types)
        for graph, nodes in chosen:
            _widened(graph, nodes)
        return ir.passes.PassResult(model, modified=any(nodes for _, nodes in chosen))


_Chosen: TypeAlias = "list[tuple[ir.Node, list[int], list[int]]]"
"""Nodes to be widened, with the positions of their narrow inputs and outputs."""


def _chosen(graph: ir.Graph, types: Types) -> _Chosen:
    found = [(node, _narrow(node.inputs, types), _narrow(node.outputs, types)) for node in graph if _lacked(node)]
    return [each for each in found if each[1] or (each[2] and each[0].op_type in _FROM_SEQUENCES)]


def _widened(graph: ir.Graph, chosen: _Chosen) -> None:
    casts: dict[ir.Value, ir.Value] = {}
    for node, inputs, outputs in chosen:
        for at in inputs:
            value = node.inputs[at]
            assert value is not None
            if value not in casts:
                casts[value] = cast_before(graph, node, value, _WIDE)
            node.replace_input_with(at, casts[value])
        for at in outputs:
            cast_after(graph, node, node.outputs[at], _WIDE, _NARROW)


def _retyped(graph: ir.Graph, types: Types) -> None:
    """Say of what the sequences of a graph are once tensors are widened on their way into them."""
    for value in [*graph.inputs, *(output for node in graph for output in node.outputs)]:
        match types.type(value):
            case ir.SequenceType(elem_type=ir.TensorType(dtype=dtype)) if dtype is _NARROW:
                value.type = ir.SequenceType(ir.TensorType(_WIDE))


def _lacked(node: ir.Node) -> bool:
    return not node.domain and (node.op_type not in _HAD or node.attributes.get_string("reduction", "none") != "none")


def _narrow(values: Sequence[ir.Value | None], types: Types) -> list[int]:
    return [at for at, value in enumerate(values) if value is not None and types.type(value) == ir.TensorType(_NARROW)]
