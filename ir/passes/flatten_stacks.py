from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.graphs import has_references, typed_graphs
from entrepot.ir.typing.query import Types

_INPUTS = 13
"""The opset from which an Unsqueeze takes its axes as an input."""

_ONE_AXIS = 15


class FlattenStacks(ir.passes.InPlacePass):
    """Put together along an axis what is stacked before it and then regrouped: the elements lie in the same order.

    Before: ``Reshape(Concat<axis = 1>(Unsqueeze(a, [1]), Unsqueeze(b, [1])), s)``, ``a`` being a matrix. After:
    ``Reshape(Concat<axis = 1>(a, b), s)``. Only if nothing else reads the stack, but for sizes of the axes before.
    Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names = Names(model)
        flattened = [
            _flatten(node, types, names)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _INPUTS
            for node in list(graph)
            if node.op_type == "Concat" and not node.domain and not has_references(node)
        ]
        return ir.passes.PassResult(model, modified=any(flattened))


def _flatten(node: ir.Node, types: Types, names: Names) -> bool:
    stack = node.outputs[0]
    rank = len(types.shape(stack) or ())
    if not rank:
        return False
    axis = node.attributes["axis"].as_int() % rank
    parts = [_stacked(value, axis, rank, types) for value in node.inputs]
    if axis + 1 >= rank or None in parts or stack.is_graph_output() or not stack.uses():
        return False
    if not all(_is_same_of(use.node, use.idx, axis, types) for use in stack.uses()):
        return False
    new = ir.node("Concat", parts, {"axis": axis})
    new.name, new.outputs[0].name = node.name, names.fresh(f"{stack.name}_flat")
    new.metadata_props.update(node.metadata_props)
    new.outputs[0].type = stack.type
    assert node.graph is not None
    node.graph.insert_before(node, new)
    stack.replace_all_uses_with(new.outputs[0])
    return True


def _stacked(value: ir.Value | None, axis: int, rank: int, types: Types) -> ir.Value | None:
    """What gets the axis of the stack, for nothing else."""
    node = None if value is None else value.producer()
    if value is None or node is None or node.op_type != "Unsqueeze" or node.domain or len(value.uses()) > 1:
        return None
    added = types.known.array(node.inputs[1])
    if added is None or [int(each) % rank for each in added.flat] != [axis]:
        return None
    return node.inputs[0] if types.shape(node.inputs[0]) is not None else None


def _is_same_of(reader: ir.Node, at: int, axis: int, types: Types) -> bool:
    """Whether a reader of the stack does the same with what has one axis less."""
    if reader.domain or at or has_references(reader):
        return False
    if reader.op_type == "Shape":
        start, end = reader.attributes.get_int("start", 0), reader.attributes.get_int("end", -1)
        return types.opsets.get("", 0) >= _ONE_AXIS and 0 <= start <= end <= axis
    if reader.op_type != "Reshape":
        return False
    sizes = types.known.array(reader.inputs[1])
    return bool(reader.attributes.get_int("allowzero", 0)) or (sizes is not None and 0 not in sizes[axis:])
