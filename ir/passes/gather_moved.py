from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.graphs import has_references, may_write_constants, replace, typed_graphs, write_constant
from entrepot.ir.typing.query import Types

_INPUTS = 13
"""The opset from which an Unsqueeze takes its axes as an input, and a Gather counts from the end."""


class GatherMoved(ir.passes.InPlacePass):
    """Take one position of an axis where the axis lies, and leave the axis where it is put back.

    Before: ``Gather<axis = 0>(Transpose<perm = [1, 0, 2]>(x), 3)``, for one step after the other. After:
    ``Gather<axis = 1>(x, 3)``; only if all that reads the transposed value takes such positions, and the other axes
    keep their order. Before: ``Unsqueeze(Gather<axis = 1>(x, 3), [1])``. After: ``Gather<axis = 1>(x, [3])``; only if
    nothing else reads it. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names = Names(model)
        taken = [
            _RULES[node.op_type](node, types, names)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _INPUTS and may_write_constants(types)
            for node in list(graph)
            if node.op_type in _RULES and not node.domain and not has_references(node)
        ]
        return ir.passes.PassResult(model, modified=any(taken))


def _transposed(node: ir.Node, types: Types, _names: Names) -> bool:
    moved, order = node.outputs[0], node.attributes.get_ints("perm", ())
    readers = [use.node for use in moved.uses()]
    if not order or not readers or moved.is_graph_output():
        return False
    places = [_place(reader, moved, types) for reader in readers]
    if any(place is None or not _keeps_order(order, place[0]) for place in places):
        return False
    for reader, place in zip(readers, places, strict=True):
        assert place is not None
        reader.replace_input_with(0, node.inputs[0])
        reader.attributes["axis"] = ir.AttrInt64("axis", order[place[0]])
    return True


def _keeps_order(order: Sequence[int], axis: int) -> bool:
    left = [each for at, each in enumerate(order) if at != axis]
    return left == sorted(left)


def _unsqueezed(node: ir.Node, types: Types, names: Names) -> bool:
    single, shape = node.inputs[0], types.shape(node.outputs[0])
    gather = None if single is None else single.producer()
    if single is None or gather is None or gather.graph is not node.graph or shape is None:
        return False
    place, added = _place(gather, gather.inputs[0] if gather.inputs else None, types), types.known.array(node.inputs[1])
    if place is None or added is None or len(single.uses()) > 1 or single.is_graph_output():
        return False
    axis, index = place
    if [int(each) % len(shape) for each in added.flat] != [axis]:
        return False
    position = write_constant(node, np.array([index], np.int64), "place", names)
    replace(node, ir.node("Gather", [gather.inputs[0], position], {"axis": axis}))
    return True


def _place(node: ir.Node, data: ir.Value | None, types: Types) -> tuple[int, int] | None:
    """The axis and the position of a Gather that takes a single one of ``data``."""
    shape = types.shape(data)
    if node.op_type != "Gather" or node.domain or has_references(node) or node.inputs[0] is not data or shape is None:
        return None
    index = types.known.array(node.inputs[1])
    if index is None or index.shape or node.inputs[1] is data:
        return None
    return node.attributes.get_int("axis", 0) % len(shape), int(index)


_RULES = {"Transpose": _transposed, "Unsqueeze": _unsqueezed}
