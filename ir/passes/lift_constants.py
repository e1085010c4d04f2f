from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.opset.values import INITIALIZERS_ARE_INPUTS


class LiftConstants(ir.passes.InPlacePass):
    """Keep constants beside the weights instead of in nodes.

    Before: ``Constant -> shape -> Reshape``. After: ``Reshape``, and ``shape`` is an initializer of the main graph.
    Constants inside branches and loops go there too. One that is an output stays a node, as do those of functions,
    which have no weights, and all of them in files that list weights among the inputs (IR version 3 and older).
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        if model.ir_version <= INITIALIZERS_ARE_INPUTS:
            return ir.passes.PassResult(model, modified=False)
        names = Names(model)
        nodes = [node for node in model.graph.all_nodes() if node.op_type == "Constant" and not node.domain]
        lifted = [_lift(node, model.graph, names) for node in nodes]
        return ir.passes.PassResult(model, modified=any(lifted))


def _lift(node: ir.Node, main: ir.Graph, names: Names) -> bool:
    output, graph = node.outputs[0], node.graph
    tensor = None if "sparse_value" in node.attributes else ir.convenience.get_const_tensor(output)
    if tensor is None or output.is_graph_output() or graph is None:
        return False
    name = output.name if graph is main else names.fresh(output.name or "constant")
    constant = ir.Value(
        name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(tensor.shape.numpy()), const_value=tensor,
        doc_string=output.doc_string, metadata_props=dict(output.metadata_props),
    )  # fmt: skip
    output.replace_all_uses_with(constant)
    output.name = ""
    graph.remove(node, safe=True)
    main.register_initializer(constant)
    return True
