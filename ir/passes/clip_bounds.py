from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir

from entrepot.ir.passes.graphs import has_references, replace, typed_graphs
from entrepot.ir.typing.query import Types

_ANY_NUMBER = 12
"""From this opset on a Clip takes whole numbers, and its bounds as inputs."""

_KINDS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64})
"""What onnxruntime (1.31) takes for Max, Min and Clip alike."""


class ClipBounds(ir.passes.InPlacePass):
    """Keep elements between two numbers with one node, which takes less than half the time of two.

    Before: ``Min(Max(x, 0.0), 1.0)``. After: ``Clip(x, 0.0, 1.0)``.
    Only where nothing else reads what is in between; the other way round only where the bounds are in order, since a
    Clip applies the upper one last. Subgraphs and functions are covered.

    Args:
        weights: Names of initializers that are weights: they may get out of order by training.
    """

    def __init__(self, weights: Collection[str] = ()) -> None:
        super().__init__()
        self._weights = weights

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        clipped = [
            _clip(node, types, self._weights)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _ANY_NUMBER
            for node in list(graph)
            if node.op_type in _OTHER
        ]
        return ir.passes.PassResult(model, modified=any(clipped))


_OTHER = {"Min": "Max", "Max": "Min"}


def _clip(node: ir.Node, types: Types, weights: Collection[str]) -> bool:
    outer = _bounded(node, types, weights)
    inner = None if outer is None else outer[0].producer()
    if outer is None or inner is None or inner.op_type != _OTHER[node.op_type] or len(outer[0].uses()) > 1:
        return False
    first = None if outer[0].is_graph_output() else _bounded(inner, types, weights)
    if first is None or inner.graph is not node.graph:
        return False
    low, high = (first[1], outer[1]) if node.op_type == "Min" else (outer[1], first[1])
    ends = [types.known.array(bound) for bound in (low, high)]
    if node.op_type == "Max" and not (ends[0] is not None and ends[1] is not None and ends[0] <= ends[1]):
        return False
    replace(node, ir.node("Clip", [first[0], low, high]))
    return True


def _bounded(node: ir.Node, types: Types, weights: Collection[str]) -> tuple[ir.Value, ir.Value] | None:
    """What is bounded and the number that bounds it."""
    if node.domain or has_references(node) or len(node.inputs) != 2:
        return None
    for value, bound in (node.inputs, reversed(node.inputs)):
        if value is None or bound is None or types.known.array(value) is not None or bound.name in weights:
            continue
        number, kind = types.known.array(bound), types.type(value)
        if number is not None and not number.shape and isinstance(kind, ir.TensorType) and kind.dtype in _KINDS:
            return value, bound
    return None
