from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.graphs import has_references, replace, typed_graphs, write_constant
from entrepot.ir.typing.query import Types

_NEGATIVE_INDICES = 11
"""Before this opset a Gather does not count from the end."""

_LARGEST = (1 << 31) - 1
"""The end of a slice up to the end of the axis, however long."""


class GatherSlices(ir.passes.InPlacePass):
    """Take one position of an axis with one node.

    Before: ``Squeeze(Slice(x, [2], [3], axes=[1]), [1])``. After: ``Gather<axis = 1>(x, 2)``.
    Only where nothing else reads the slice. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names = Names(model)
        gathered = [
            _gather(node, types, names)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _NEGATIVE_INDICES
            for node in list(graph)
            if node.op_type == "Squeeze" and not node.domain
        ]
        return ir.passes.PassResult(model, modified=any(gathered))


def _gather(squeeze: ir.Node, types: Types, names: Names) -> bool:
    part = squeeze.inputs[0]
    node = None if part is None else part.producer()
    if part is None or node is None or node.op_type != "Slice" or node.domain or len(part.uses()) > 1:
        return False
    if part.is_graph_output() or has_references(node) or has_references(squeeze):
        return False
    place = _place(node, types)
    dropped = _dropped(squeeze, types)
    shape = types.shape(part)
    if place is None or dropped is None or shape is None:
        return False
    axis, index = (place[0] % len(shape), place[1])
    if [each % len(shape) for each in dropped] != [axis]:
        return False
    position = write_constant(squeeze, np.array(index, np.int64), "index", names)
    replace(squeeze, ir.node("Gather", [node.inputs[0], position], {"axis": axis}))
    return True


def _dropped(squeeze: ir.Node, types: Types) -> list[int] | None:
    known = types.known.array(squeeze.inputs[1]) if len(squeeze.inputs) > 1 else squeeze.attributes.get_ints("axes")
    return None if known is None else [int(axis) for axis in known]


def _place(node: ir.Node, types: Types) -> tuple[int, int] | None:
    """The axis and position of a Slice that takes a single position."""
    given = [None if value is None else types.known.array(value) for value in node.inputs[1:]]
    if len(given) < 3 or any(each is None or each.size != 1 for each in given):
        return None
    start, end, axis, *step = [int(each.item()) for each in given if each is not None]
    follows = end == start + 1 and start != -1
    last = start == -1 and end >= _LARGEST
    return (axis, start) if (follows or last) and step in ([], [1]) else None
