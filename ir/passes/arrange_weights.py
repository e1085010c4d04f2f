from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.derived import derived
from entrepot.ir.opset.values import INITIALIZERS_ARE_INPUTS
from entrepot.ir.passes.graphs import has_references, is_fixed, typed_graphs
from entrepot.ir.typing.query import Types

_MOVES = frozenset({"Transpose", "Reshape", "Squeeze", "Unsqueeze"})


class ArrangeWeights(ir.passes.InPlacePass):
    """Store a weight in the arrangement in which it is used, under its name.

    Before: ``MatMul(x, Transpose(w))``, ``w`` of 10 by 20. After: ``MatMul(x, w)``, ``w`` of 20 by 10.
    A matrix notes that it is stored transposed, for whoever makes a module of the model. The same for Reshape,
    Squeeze and Unsqueeze. A weight with another reader stays as it is, and so is never stored twice. The array is
    made when it is read. Subgraphs are covered; functions have no weights.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        if model.ir_version <= INITIALIZERS_ARE_INPUTS:
            return ir.passes.PassResult(model, modified=False)
        arranged = [
            _arrange(node, types)
            for graph, types in typed_graphs(model)
            for node in list(graph)
            if node.op_type in _MOVES and not node.domain
        ]
        return ir.passes.PassResult(model, modified=any(arranged))


def _arrange(node: ir.Node, types: Types) -> bool:
    weight, output = node.inputs[0], node.outputs[0]
    if has_references(node) or output.is_graph_output() or weight is None or not is_fixed(weight):
        return False
    tensor, shape = weight.const_value, types.shape(output)
    if tensor is None or len(weight.uses()) > 1 or weight.is_graph_output() or shape is None:
        return False
    if tensor.dtype == ir.DataType.STRING or tensor.dtype.bitwidth < 8:
        return False
    if any(types.known.array(value) is None for value in node.inputs[1:]):
        return False
    sizes = [int(size) for size in shape if isinstance(size, int)]
    if len(sizes) != len(shape):
        return False
    perm = node.attributes.get_ints("perm", tuple(reversed(range(len(shape)))))
    moves = node.op_type == "Transpose"
    arranged = derived(
        lambda: np.transpose(tensor.numpy(), perm) if moves else tensor.numpy().reshape(sizes),
        [tensor],
        like=tensor,
        shape=sizes,
    )
    successor = _store(weight, arranged)
    if moves and list(perm) == [1, 0]:
        successor.metadata_props["entrepot.stored"] = "transposed"
    output.replace_all_uses_with(successor)
    assert node.graph is not None
    node.graph.remove(node, safe=True)
    return True


def _store(weight: ir.Value, tensor: ir.TensorProtocol) -> ir.Value:
    """The weight's successor: a value of its own, since the shape of the old one may be remembered."""
    graph = weight.graph
    assert isinstance(graph, ir.Graph)
    successor = ir.Value(
        name=weight.name, type=weight.type, shape=ir.Shape(tensor.shape.numpy()), const_value=tensor,
        doc_string=weight.doc_string, metadata_props=dict(weight.metadata_props),
    )  # fmt: skip
    del graph.initializers[str(weight.name)]
    graph.register_initializer(successor)
    return successor
