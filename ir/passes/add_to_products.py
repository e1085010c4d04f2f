from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.dims import same_shape
from entrepot.ir.passes.graphs import alone_before, is_fixed, replace, typed_graphs
from entrepot.ir.typing.query import Types

_BIAS_IS_OPTIONAL = 11


class AddToProducts(ir.passes.InPlacePass):
    """Let a Gemm add to its product what was added after it: another Gemm, which has both biases then.

    Before: ``Add(Gemm(x, v, a), Gemm(h, w, b))``, as in a cell of an LSTM or a GRU. After: ``Gemm(x, v, Gemm(h, w, a +
    b))``; the sum of the biases depends on no input. Only where nothing else reads either product, and biases are
    weights. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names = Names(model)
        joined = [
            _join(node, types, names)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _BIAS_IS_OPTIONAL
            for node in list(graph)
            if node.op_type == "Add" and not node.domain
        ]
        return ir.passes.PassResult(model, modified=any(joined))


def _join(node: ir.Node, types: Types, names: Names) -> bool:
    outer, inner = (_product(value, node) for value in node.inputs)
    if outer is None or inner is None or outer is inner:
        return False
    if not same_shape(types.shape(outer.outputs[0]), types.shape(inner.outputs[0])):
        return False
    if _bias(outer) is not None and _bias(inner) is None:
        outer, inner = inner, outer
    if (moved := _bias(outer)) is not None:
        bias = _bias(inner)
        if not (is_fixed(moved) and is_fixed(bias) and same_shape(types.shape(moved), types.shape(bias))):
            return False
        _give_bias(inner, moved, names)
    replace(node, ir.Node("", "Gemm", [*outer.inputs[:2], inner.outputs[0]], outer.attributes.values()))
    return True


def _product(value: ir.Value | None, reader: ir.Node) -> ir.Node | None:
    """The Gemm of the same graph that computes a value for one reader, and adds its bias as it is."""
    node = alone_before(value, reader)
    return (
        node if node is not None and node.op_type == "Gemm" and node.attributes.get_float("beta", 1.0) == 1.0 else None
    )


def _bias(node: ir.Node) -> ir.Value | None:
    return node.inputs[2] if len(node.inputs) > 2 else None


def _give_bias(node: ir.Node, more: ir.Value, names: Names) -> None:
    bias = _bias(node)
    both = ir.node("Add", [bias, more])
    both.outputs[0].name = both.name = names.fresh(f"{node.outputs[0].name}_bias")
    assert bias is not None
    both.outputs[0].type, both.outputs[0].shape = bias.type, bias.shape
    graph = bias.graph  # around a loop the sum is computed once
    assert graph is not None
    graph.insert_before(graph[0], both)
    node.replace_input_with(2, both.outputs[0])
