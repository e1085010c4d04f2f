from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from entrepot.ir.passes.graphs import alone_before, has_references, replace, typed_graphs
from entrepot.ir.typing.query import Types

_AXES_ARE_AN_INPUT = 18
"""The opset from which all reductions are told their axes in the same way."""

_KINDS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})
"""What onnxruntime (1.31) reduces with every operator."""


class SumSquares(ir.passes.InPlacePass):
    """Sum squares up, and take lengths of vectors, with one node.

    Before: ``ReduceSum(Mul(x, x), [1])``. After: ``ReduceSumSquare(x, [1])``; with a Sqrt behind it, ``ReduceL2``.
    A Pow by 2 is a square, too. Only where nothing else reads what is in between. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        summed = [
            _RULES[node.op_type](node, types)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _AXES_ARE_AN_INPUT
            for node in list(graph)
            if node.op_type in _RULES and not node.domain and not has_references(node)
        ]
        return ir.passes.PassResult(model, modified=any(summed))


def _sum(node: ir.Node, types: Types) -> bool:
    square = alone_before(node.inputs[0], node)
    squared = None if square is None else _squared(square, types)
    return squared is not None and _reduce(node, "ReduceSumSquare", node, squared, types)


def _length(node: ir.Node, types: Types) -> bool:
    summed = alone_before(node.inputs[0], node)
    if summed is None or summed.op_type != "ReduceSumSquare":
        return False
    return _reduce(node, "ReduceL2", summed, summed.inputs[0], types)


_RULES: dict[str, Callable[[ir.Node, Types], bool]] = {"ReduceSum": _sum, "Sqrt": _length}


def _reduce(node: ir.Node, op_type: str, like: ir.Node, value: ir.Value | None, types: Types) -> bool:
    """Reduce ``value`` as ``like`` reduces, in the place of ``node``."""
    kind = types.type(value)
    if not isinstance(kind, ir.TensorType) or kind.dtype not in _KINDS:
        return False
    replace(node, ir.Node("", op_type, [value, *like.inputs[1:]], like.attributes.values()))
    return True


def _squared(node: ir.Node, types: Types) -> ir.Value | None:
    if node.op_type == "Mul":
        return node.inputs[0] if node.inputs[0] is node.inputs[1] else None
    power = types.known.array(node.inputs[1]) if node.op_type == "Pow" else None
    return node.inputs[0] if power is not None and power.ndim == 0 and power == 2 else None
