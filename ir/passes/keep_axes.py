from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from entrepot.ir.passes.dims import is_checked, same_shape
from entrepot.ir.passes.graphs import has_references, replace, typed_graphs
from entrepot.ir.typing.query import Types

_REGROUPING = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten"})


class KeepAxes(ir.passes.InPlacePass):
    """Let a reduction keep the axes that are put back after it, or leave out those that are taken away.

    Before: ``Squeeze(ReduceMean(x, [1]), [1])``. After: ``ReduceMean<keepdims=0>(x, [1])``;
    only where nothing else reads it. ArgMax and ArgMin are reductions, too. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        kept = [
            _keep(node, types)
            for graph, types in typed_graphs(model)
            for node in list(graph)
            if node.op_type in _REGROUPING and not node.domain
        ]
        return ir.passes.PassResult(model, modified=any(kept))


def _keep(node: ir.Node, types: Types) -> bool:
    reduced = node.inputs[0]
    reduction = None if reduced is None else reduced.producer()
    if reduced is None or reduction is None or reduction.graph is not node.graph:
        return False
    if has_references(reduction) or len(reduced.uses()) > 1 or reduced.is_graph_output():
        return False
    other = 1 - reduction.attributes.get_int("keepdims", 1)
    if not same_shape(_shape(reduction, other, types), types.shape(node.outputs[0])):
        return False
    if any(is_checked(value, types) for value in node.inputs[1:]):
        return False
    attributes = {**reduction.attributes, "keepdims": ir.AttrInt64("keepdims", other)}
    replace(node, ir.Node("", reduction.op_type, reduction.inputs, attributes.values()))
    return True


def _shape(reduction: ir.Node, keepdims: int, types: Types) -> ir.Shape | None:
    """What a reduction has with ``keepdims``; ``None`` for what is none, or of unknown axes."""
    given = types.shape(reduction.inputs[0]) if reduction.inputs else None
    axes = None if given is None else reduced_axes(reduction, len(given), types)
    if given is None or axes is None:
        return None
    gone = {axis % len(given) for axis in axes}
    return ir.Shape([1 if axis in gone else dim for axis, dim in enumerate(given) if keepdims or axis not in gone])


def reduced_axes(node: ir.Node, rank: int, types: Types) -> Sequence[int] | None:
    """The axes that a node reduces, which may count from the end; ``None`` for what is no reduction, or unknown."""
    if node.domain or not rank:
        return None
    if node.op_type in ("ArgMax", "ArgMin"):
        return [node.attributes.get_int("axis", 0)]
    if not node.op_type.startswith("Reduce"):
        return None
    given = node.inputs[1] if len(node.inputs) > 1 else None
    known = node.attributes.get_ints("axes", []) if given is None else types.known.array(given)
    if known is None:
        return None
    return list(map(int, known)) or (None if node.attributes.get_int("noop_with_empty_axes", 0) else range(rank))
