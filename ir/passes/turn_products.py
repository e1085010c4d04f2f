from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.values import INITIALIZERS_ARE_INPUTS
from entrepot.ir.passes.graphs import has_references, is_fixed, replace, typed_graphs
from entrepot.ir.typing.query import Types


class TurnProducts(ir.passes.InPlacePass):
    """Multiply a vector from the other side instead of transposing the matrix.

    Before: ``MatMul(Transpose(a), v)``. After: ``MatMul(v, a)``; so for ``MatMul(v, Transpose(a))``, too.
    Subgraphs and functions are covered. It saves a node, and onnxruntime (1.31) gets the former wrong: it fuses the
    transposition and then takes the vector for a matrix (tests/ir/passes/test_products.py will tell when it no longer
    does). A weight that ``ArrangeWeights`` will transpose is left to it, for a product that onnxruntime joins with the
    sum after it.

    Args:
        in_place: Whether weights keep the bytes that they have.
    """

    def __init__(self, *, in_place: bool = False) -> None:
        super().__init__()
        self._in_place = in_place

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        turned = [
            _turn(node, types, stored=self._in_place or model.ir_version <= INITIALIZERS_ARE_INPUTS)
            for graph, types in typed_graphs(model)
            for node in list(graph)
            if node.op_type == "MatMul" and not node.domain
        ]
        return ir.passes.PassResult(model, modified=any(turned))


def _turn(product: ir.Node, types: Types, *, stored: bool) -> bool:
    left, right = product.inputs
    for matrix, vector, swapped in ((left, right, False), (right, left, True)):
        turned = _turned(matrix, types)
        if not stored and turned is not None and _is_only_transposed(turned):
            continue
        shape = None if vector is None else types.shape(vector)
        if turned is not None and shape is not None and len(shape) == 1:
            replace(product, ir.node("MatMul", [turned, vector] if swapped else [vector, turned]))
            return True
    return False


def _turned(value: ir.Value | None, types: Types) -> ir.Value | None:
    """The matrix that a value is the transpose of."""
    node = None if value is None else value.producer()
    if node is None or node.op_type != "Transpose" or node.domain or has_references(node):
        return None
    matrix = node.inputs[0]
    shape = None if matrix is None else types.shape(matrix)
    turned = list(node.attributes.get_ints("perm", [1, 0])) == [1, 0]
    return matrix if turned and shape is not None and len(shape) == 2 else None


def _is_only_transposed(value: ir.Value) -> bool:
    """Whether a value is a weight of which nothing reads more than what it is transposed."""
    readers = {use.node for use in value.uses()}
    return is_fixed(value) and all(
        node.op_type == "Transpose" and not node.domain and not node.outputs[0].is_graph_output() for node in readers
    )
