from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.passes.graphs import alone_before, has_references, replace, typed_graphs
from entrepot.ir.typing.query import Types

_BROADCASTING = 7
"""The opset from which products and quotients broadcast as NumPy does."""


class DivideByRoots(ir.passes.InPlacePass):
    """Divide by a square root, instead of multiplying with its reciprocal.

    Before: ``Mul(x, Reciprocal(Sqrt(Add(y, 0.1))))``. After: ``Div(x, Sqrt(Add(y, 0.1)))``, as runtimes expect
    normalisations to be written, and with one rounding fewer. The reciprocal of a root neither overflows nor vanishes,
    so that zeros, infinities and NaNs stay what they are. Only where nothing else reads it, and where onnxruntime
    (1.31) finds what is added: in double precision, for a row of numbers, or for a number that comes first, it takes
    1e-5 instead. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        divided = [
            _divide(node, types)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _BROADCASTING
            for node in list(graph)
            if node.op_type == "Mul" and not node.domain and not has_references(node)
        ]
        return ir.passes.PassResult(model, modified=any(divided))


def _divide(node: ir.Node, types: Types) -> bool:
    if types.dtype(node.outputs[0]) is not ir.DataType.FLOAT:
        return False
    for at, value in enumerate(node.inputs):
        reciprocal = alone_before(value, node)
        if reciprocal is not None and reciprocal.op_type == "Reciprocal" and _is_root(reciprocal.inputs[0], types):
            replace(node, ir.node("Div", [node.inputs[1 - at], reciprocal.inputs[0]]))
            return True
    return False


def _is_root(value: ir.Value | None, types: Types) -> bool:
    """Whether it is the square root of something and, added to it, one number that is known."""
    root = _producer(value, "Sqrt")
    total = None if root is None else _producer(root.inputs[0], "Add")
    number = None if total is None else types.known.array(total.inputs[1])
    return number is not None and number.size == 1


def _producer(value: ir.Value | None, op_type: str) -> ir.Node | None:
    node = None if value is None else value.producer()
    return node if node is not None and node.op_type == op_type and not node.domain else None
