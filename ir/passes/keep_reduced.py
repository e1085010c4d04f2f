from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

from entrepot.ir.passes.graphs import bypass, has_references, replace, typed_graphs
from entrepot.ir.passes.keep_axes import reduced_axes
from entrepot.ir.traits import traits_of
from entrepot.ir.typing.query import Types

_INPUTS = 18
"""The opset from which all reductions are told their axes in the same way."""


class KeepReduced(ir.passes.InPlacePass):
    """Let a reduction keep an axis that is put back once something has been computed from its result.

    Before: ``Unsqueeze(Sqrt(ReduceSum<keepdims = 0>(x, [1])), [1])``. After: ``Sqrt(ReduceSum<keepdims = 1>(x, [1]))``.
    Where others put the axis elsewhere, they get it by a Transpose. Only if nothing else reads what is in between, and
    nothing but numbers goes into it. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        kept = [
            _keep(node, types)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _INPUTS
            for node in list(graph)
            if node.op_type.startswith("Reduce") and not node.domain and not has_references(node)
        ]
        return ir.passes.PassResult(model, modified=any(kept))


def _keep(node: ir.Node, types: Types) -> bool:
    shape = types.shape(node.inputs[0])
    axes = None if shape is None else reduced_axes(node, len(shape), types)
    if shape is None or axes is None or len(axes) != 1 or node.attributes.get_int("keepdims", 1) != 0:
        return False
    axis, rank = axes[0] % len(shape), len(shape)
    way = _way(node, types)
    readers = [_added(use.node, rank, types) for use in way[-1].uses()]
    if way[-1].is_graph_output() or None in readers or all(each is None or each.axis != axis for each in readers):
        return False
    attributes = {**node.attributes, "keepdims": ir.AttrInt64("keepdims", 1)}
    larger = ir.Node("", node.op_type, node.inputs, attributes.values())
    sizes = ir.Shape([1 if at == axis else size for at, size in enumerate(shape)])
    for value in way:
        value.shape = sizes
    replace(node, larger)
    last = larger.outputs[0] if len(way) == 1 else way[-1]
    for each in readers:
        if each is not None and (each.axis != axis or not bypass(each.node, last)):
            _move(each, last, axis, rank)
    return True


class _Added(NamedTuple):
    """An Unsqueeze of one axis."""

    node: ir.Node
    axis: int


def _added(node: ir.Node, rank: int, types: Types) -> _Added | None:
    axes = types.known.array(node.inputs[1]) if node.op_type == "Unsqueeze" and not node.domain else None
    if axes is None or axes.size != 1 or has_references(node):
        return None
    return _Added(node, int(axes.item()) % rank)


def _way(node: ir.Node, types: Types) -> list[ir.Value]:
    """The result of a reduction, and what is computed from it element by element, one after the other."""
    way = [node.outputs[0]]
    while len(way[-1].uses()) == 1 and not way[-1].is_graph_output():
        ((reader, _),) = way[-1].uses()
        others = [value for value in reader.inputs if value is not None and value is not way[-1]]
        plain = traits_of(reader).elementwise and reader.graph is node.graph and not has_references(reader)
        if not plain or len(reader.outputs) != 1 or not all(_is_number(value, types) for value in others):
            break
        way.append(reader.outputs[0])
    return way


def _is_number(value: ir.Value, types: Types) -> bool:
    shape = types.shape(value)
    return shape is not None and len(shape) == 0


def _move(added: _Added, value: ir.Value, axis: int, rank: int) -> None:
    order = [at for at in range(rank) if at != axis]
    order.insert(added.axis, axis)
    replace(added.node, ir.node("Transpose", [value], {"perm": order}))
