from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from entrepot.ir.derived import derived
from entrepot.ir.opset.values import INITIALIZERS_ARE_INPUTS
from entrepot.ir.passes.graphs import has_references, is_fixed, typed_graphs
from entrepot.ir.typing.query import Types

_STORED = "entrepot.stored"
_MOVES = frozenset({"Transpose", "Reshape", "Squeeze", "Unsqueeze"})


class ArrangeWeights(ir.passes.InPlacePass):
    """Store a weight in the arrangement in which it is used, under its name.

    Before: ``MatMul(x, Transpose(w))``, ``w`` of 10 by 20. After: ``MatMul(x, w)``, ``w`` of 20 by 10.
    It notes how it was before, for whoever makes a module of the model. The same for Reshape, Squeeze and Unsqueeze.
    A weight with another reader stays as it is, and so is never stored twice. The array is made when it is read.
    Subgraphs are covered; functions have no weights.
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
    _note(successor, tensor.shape.numpy(), list(perm) if moves else None)
    output.replace_all_uses_with(successor)
    assert node.graph is not None
    node.graph.remove(node, safe=True)
    return True


def _note(successor: ir.Value, before: Sequence[int], perm: list[int] | None) -> None:
    """Say how the weight was before: ``transposed``, ``reshaped from 4,3``, or ``rearranged`` in other ways."""
    notes = successor.metadata_props
    was = notes.get(_STORED, "")
    if perm is None and (not was or was.startswith("reshaped")):
        notes[_STORED] = was or f"reshaped from {','.join(map(str, before))}"
    else:
        notes[_STORED] = "transposed" if perm == [1, 0] and not was else "rearranged"


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
