from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.passes.graphs import graphs
from entrepot.ir.subgraphs import subgraphs


class DropUnused(ir.passes.InPlacePass):
    """Remove nodes whose results are not used, and weights that nothing uses.

    Before: ``x -> Relu -> y``, ``x -> Neg -> h``. After: ``x -> Relu -> y``.
    Inputs and outputs stay. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        modified = False
        for graph, _ in graphs(model):
            for node in reversed(graph):
                if not any(output.uses() or output.is_graph_output() for output in node.outputs):
                    _remove(node, graph)
                    modified = True
        for graph, _ in graphs(model):
            for value in list(graph.initializers.values()):
                if not (value.uses() or value.is_graph_output() or value.is_graph_input()):
                    del graph.initializers[value.name or ""]
                    modified = True
        return ir.passes.PassResult(model, modified=modified)


def _remove(node: ir.Node, graph: ir.Graph) -> None:
    graph.remove(node, safe=True)
    for body in subgraphs(node):  # what it read from the graphs around it is no longer used
        for inner in body.all_nodes():
            for index in range(len(inner.inputs)):
                inner.replace_input_with(index, None)
