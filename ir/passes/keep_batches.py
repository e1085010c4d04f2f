from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.dims import is_checked, same_dim
from entrepot.ir.passes.graphs import alone_before, has_references, replace, typed_graphs
from entrepot.ir.typing.query import Types

_BROADCASTING = 7
"""The opset from which sums broadcast as NumPy does."""


class KeepBatches(ir.passes.InPlacePass):
    """Multiply what has more than two axes by a matrix as it is, instead of as the matrix of its rows.

    Before: ``Reshape(Gemm(Reshape(x, [-1, 8]), w, b), [2, n, 4])``. After: ``Add(MatMul(x, w), b)``, which needs no
    shape. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names = Names(model)
        kept = [
            _keep(node, types, names)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _BROADCASTING
            for node in list(graph)
            if node.op_type == "Reshape" and not node.domain and not has_references(node)
        ]
        return ir.passes.PassResult(model, modified=any(kept))


def _keep(back: ir.Node, types: Types, names: Names) -> bool:
    product = alone_before(back.inputs[0], back)
    if product is None or not _is_plain(product, types) or is_checked(back.inputs[1], types):
        return False
    rows = product.inputs[0]
    batch = None if rows is None else _regrouped(rows, types)
    if batch is None or not _goes_back(back.outputs[0], batch, product.outputs[0], types):
        return False
    multiplied = ir.node("MatMul", [batch, product.inputs[1]])
    bias = product.inputs[2] if len(product.inputs) > 2 else None
    if bias is None:
        replace(back, multiplied)
        return True
    multiplied.metadata_props.update(product.metadata_props)
    multiplied.name = multiplied.outputs[0].name = names.fresh(f"{product.outputs[0].name}_product")
    multiplied.outputs[0].type, multiplied.outputs[0].shape = back.outputs[0].type, back.outputs[0].shape
    assert back.graph is not None
    back.graph.insert_before(back, multiplied)
    replace(back, ir.node("Add", [multiplied.outputs[0], bias]))
    return True


def _is_plain(product: ir.Node, types: Types) -> bool:
    """Whether a Gemm multiplies as a MatMul does, and adds the same to every row."""
    if product.op_type != "Gemm" or any(product.attributes.get_int(name, 0) for name in ("transA", "transB")):
        return False
    if any(product.attributes.get_float(name, 1.0) != 1.0 for name in ("alpha", "beta")):
        return False
    bias = product.inputs[2] if len(product.inputs) > 2 else None
    shape = None if bias is None else types.shape(bias)
    return bias is None or (shape is not None and (len(shape) < 2 or shape[0] == 1))


def _regrouped(rows: ir.Value, types: Types) -> ir.Value | None:
    """The tensor of which a matrix has the rows."""
    node = rows.producer()
    if node is None or node.op_type != "Reshape" or node.domain or is_checked(node.inputs[1], types):
        return None
    batch, matrix = (types.shape(value) for value in (node.inputs[0], rows))
    if batch is None or matrix is None or len(batch) < 3 or len(matrix) != 2:
        return None
    return node.inputs[0] if isinstance(batch[-1], int) and batch[-1] == matrix[-1] else None


def _goes_back(result: ir.Value, batch: ir.Value, product: ir.Value, types: Types) -> bool:
    """Whether a result has the axes of the tensor again, but for the last, which is that of the product."""
    shape, given, made = (types.shape(value) for value in (result, batch, product))
    if shape is None or given is None or made is None or len(shape) != len(given):
        return False
    return all(same_dim(a, b) for a, b in zip(shape[:-1], given[:-1], strict=True)) and same_dim(shape[-1], made[-1])
