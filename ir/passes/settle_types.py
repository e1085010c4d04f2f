from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.passes.graphs import has_references, replace, typed_graphs
from entrepot.ir.typing.query import Types


class SettleTypes(ir.passes.InPlacePass):
    """State the type that a value is converted to where it is known.

    Before: ``CastLike(x, w)`` with a float ``w``. After: ``Cast<to = FLOAT>(x)``. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        settled = [
            _settle(node, types)
            for graph, types in typed_graphs(model)
            for node in list(graph)
            if node.op_type == "CastLike" and not node.domain
        ]
        return ir.passes.PassResult(model, modified=any(settled))


def _settle(node: ir.Node, types: Types) -> bool:
    target = types.type(node.inputs[1])
    if not isinstance(target, ir.TensorType) or has_references(node):
        return False
    to = ir.AttrInt64("to", target.dtype)
    replace(node, ir.Node("", "Cast", [node.inputs[0]], [to, *node.attributes.values()]))
    return True
