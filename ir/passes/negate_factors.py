from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.graphs import alone_before, has_references, may_write_constants, typed_graphs, write_constant
from entrepot.ir.typing.query import Types

_BROADCASTING = 7
"""The opset from which products broadcast as NumPy does."""


class NegateFactors(ir.passes.InPlacePass):
    """Negate a number that something is multiplied with or divided by, instead of what is multiplied.

    Before: ``Div(Neg(x), Mul(y, 2.0))``. After: ``Div(x, Mul(y, -2.0))``, which is equal to the last bit.
    Only where nothing else reads what changes. Subgraphs and functions are covered.

    Args:
        weights: Names of initializers that stay as they are, even if they are single numbers.
    """

    def __init__(self, weights: Collection[str] = ()) -> None:
        super().__init__()
        self._weights = weights

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names = Names(model)
        moved = [
            self._moved(node, types, names)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _BROADCASTING and may_write_constants(types)
            for node in list(graph)
            if _is_product(node)
        ]
        return ir.passes.PassResult(model, modified=any(moved))

    def _moved(self, node: ir.Node, types: Types, names: Names) -> bool:
        for at, other in ((0, 1), (1, 0)):
            negation = alone_before(node.inputs[at], node)
            if negation is None or negation.op_type != "Neg":
                continue
            if self._negate(node, other, types, names):
                node.replace_input_with(at, negation.inputs[0])
                return True
        return False

    def _negate(self, node: ir.Node, at: int, types: Types, names: Names) -> bool:
        """Negate an operand, if it is a number, or a product with one."""
        value = node.inputs[at]
        known = types.known.array(value)
        if value is not None and known is not None:
            if known.size != 1 or known.dtype.kind != "f" or value.name in self._weights:
                return False
            node.replace_input_with(at, write_constant(node, -known, "factor", names))
            return True
        factor = alone_before(value, node)
        if factor is None or not _is_product(factor):
            return False
        return any(types.known.array(factor.inputs[each]) is not None and self._negate(factor, each, types, names)
                   for each in (0, 1))  # fmt: skip


def _is_product(node: ir.Node) -> bool:
    return node.op_type in ("Mul", "Div") and not node.domain and not has_references(node)
