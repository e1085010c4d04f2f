"""Nodes with graphs inside, and these graphs, are found in the order in which onnx_ir goes through them."""

import onnx_ir as ir

from entrepot.ir.passes.graphs import typed_graphs
from entrepot.ir.subgraphs import nodes_with_subgraphs, subgraphs, with_subgraphs

TEXT = """
<ir_version: 10, opset_import: ["" : 21]>
main (bool c, float[2] x) => (float[2] y, float[2] z) {
    a = Relu (x)
    y = If (c) <
        then_branch = first () => (float[2] p) {
            q = Neg (a)
            p = If (c) <
                then_branch = inner () => (float[2] r) { r = Abs (q) },
                else_branch = outer () => (float[2] s) { s = Neg (q) }
            >
        },
        else_branch = second () => (float[2] t) { t = Identity (a) }
    >
    z = If (c) <
        then_branch = third () => (float[2] u) { u = Abs (y) },
        else_branch = fourth () => (float[2] v) { v = Neg (y) }
    >
}
"""


def test_graphs_and_their_nodes_are_in_order():
    model = ir.from_onnx_text(TEXT)
    graph = model.graph
    assert list(with_subgraphs(graph)) == [graph, *graph.subgraphs()]
    assert list(nodes_with_subgraphs(graph)) == [node for node in graph.all_nodes() if list(subgraphs(node))]
    assert [inner.name for inner, _ in typed_graphs(model)][1:] == [
        "first",
        "inner",
        "outer",
        "second",
        "third",
        "fourth",
    ]
