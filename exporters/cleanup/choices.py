"""Choices between truth values as operations on these: onnxruntime (1.31) has no ``Where`` of them."""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir

from entrepot.ir.passes.graphs import typed_graphs
from entrepot.ir.typing.query import Types


def choose_truths(model: onnx_ir.Model, weights: Collection[str]) -> None:
    """Write ``Where(c, a, b)`` of truth values as ``c and a, or not c and b``, less what a constant decides.

    Before: ``Where(c, a, False)``. After: ``And(c, a)``.
    """
    for graph, types in typed_graphs(model):
        for node in [node for node in graph if node.op_type == "Where" and not node.domain]:
            if types.dtype(node.inputs[1]) is onnx_ir.DataType.BOOL:
                _replace(graph, node, types, weights)


def _replace(graph: onnx_ir.Graph, node: onnx_ir.Node, types: Types, weights: Collection[str]) -> None:
    condition, yes, no = node.inputs
    made: list[onnx_ir.Node] = []

    def op(name: str, *values: onnx_ir.Value | None) -> onnx_ir.Value:
        made.append(onnx_ir.node(name, values))
        return made[-1].outputs[0]

    when, unless = (_told(value, types, weights) for value in (yes, no))
    if when is True:
        op("Or", condition, no)
    elif when is False:
        op("And", op("Not", condition), no)
    elif unless is True:
        op("Or", op("Not", condition), yes)
    elif unless is False:
        op("And", condition, yes)
    else:
        op("Or", op("And", condition, yes), op("And", op("Not", condition), no))
    onnx_ir.convenience.replace_nodes_and_values(graph, node, [node], made, node.outputs, made[-1].outputs)


def _told(value: onnx_ir.Value | None, types: Types, weights: Collection[str]) -> bool | None:
    """What a constant says that does not change the shape of what it is chosen for; ``None`` for others."""
    if value is None or value.name in weights:
        return None
    array = types.known.array(value)
    return bool(array) if array is not None and array.ndim == 0 else None
