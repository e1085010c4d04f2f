from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from entrepot.ir.passes.graphs import has_references, replace, typed_graphs
from entrepot.ir.typing.query import Types

_NEGATIVE_INDICES = 12
"""The opset from which both operators count from the end where an index is negative."""


class GatherRows(ir.passes.InPlacePass):
    """Look up along one axis with a Gather alone.

    Before: ``GatherND(x, Unsqueeze(i, [-1]))``. After: ``Gather(x, i)``.
    Before: ``Transpose(Gather(Transpose(x), i))`` of a matrix. After: ``Gather<axis = 1>(x, i)``, wherever the second
    Transpose puts the axes back. Only where nothing else reads what is in between. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        gathered = [
            _RULES[node.op_type](node, types)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _NEGATIVE_INDICES
            for node in list(graph)
            if node.op_type in _RULES and not node.domain and not has_references(node)
        ]
        return ir.passes.PassResult(model, modified=any(gathered))


def _look_up(node: ir.Node, types: Types) -> bool:
    data, places = node.inputs
    added = _before(places, "Unsqueeze")
    if added is None or node.attributes.get_int("batch_dims", 0) != 0:
        return False
    axes, shape = types.known.array(added.inputs[1]), types.shape(places)
    if axes is None or shape is None or [int(axis) % len(shape) for axis in axes.reshape(-1)] != [len(shape) - 1]:
        return False
    replace(node, ir.node("Gather", [data, added.inputs[0]], {"axis": 0}))
    return True


def _look_up_along(node: ir.Node, types: Types) -> bool:
    gather = _before(node.inputs[0], "Gather", alone=True)
    if gather is None:
        return False
    turn, places = _before(gather.inputs[0], "Transpose", alone=True), types.shape(gather.inputs[1])
    if turn is None or places is None:
        return False
    there, back = (each.attributes.get_ints("perm", ()) for each in (turn, node))
    if not there or not back:
        return False
    at = gather.attributes.get_int("axis", 0) % len(there)
    axis, found = there[at], _looked_up(there, at, len(places))
    if [found[each] for each in back] != _looked_up(range(len(there)), axis, len(places)):
        return False
    replace(node, ir.node("Gather", [turn.inputs[0], gather.inputs[1]], {"axis": axis}))
    return True


_RULES = {"GatherND": _look_up, "Transpose": _look_up_along}


def _looked_up(axes: Sequence[int], at: int, count: int) -> list[tuple[int, int]]:
    """The axes after a Gather at one of them: those of the places stand there, numbered."""
    return [(axis, number) for place, axis in enumerate(axes) for number in range(count if place == at else 1)]


def _before(value: ir.Value | None, op_type: str, *, alone: bool = False) -> ir.Node | None:
    """The node of a type that computes ``value``, for one reader ``alone`` if that matters."""
    if value is None or (alone and (len(value.uses()) > 1 or value.is_graph_output())):
        return None
    node = value.producer()
    if node is None or (node.domain, node.op_type) != ("", op_type) or has_references(node):
        return None
    return node
