"""What the operators of a model do with elements: each on its own, by their order, or until a condition holds."""

from __future__ import annotations

import onnx_ir

from entrepot.ir.traits import Cost, traits_of

_RECURRENT = ("GRU", "LSTM", "RNN")


def is_pointwise(model: onnx_ir.Model) -> bool:
    """Whether no element of a result sums up, or chooses between, several elements of an input.

    Such a model has no cancellation except within an element: each result can be judged by its own size.
    """
    nodes = onnx_ir.traversal.RecursiveGraphIterator(model.graph)
    return not model.functions and all(_is_pointwise(node) for node in nodes)


def _is_pointwise(node: onnx_ir.Node) -> bool:
    known = traits_of(node)
    laid_out_anew = known.moves and (known.cost is Cost.FREE or known.grows)
    return laid_out_anew or (known.elementwise and node.op_type != "BitCast")  # bits say nothing of a number's size


def chooses(model: onnx_ir.Model) -> bool:
    """Whether a result may depend on which of two equal elements comes first."""
    return any(traits_of(node).chooses for node in onnx_ir.traversal.RecursiveGraphIterator(model.graph))


def has_gates(model: onnx_ir.Model) -> bool:
    """Whether there is a recurrent layer."""
    return any(node.op_type in _RECURRENT for node in onnx_ir.traversal.RecursiveGraphIterator(model.graph))


def may_not_end(model: onnx_ir.Model) -> bool:
    """Whether a loop ends by a condition that it computes: for unusual values it may never end."""
    nodes = onnx_ir.traversal.RecursiveGraphIterator(model.graph)
    return any(node.op_type == "Loop" and _computes_condition(node.attributes["body"].as_graph()) for node in nodes)


def _computes_condition(body: onnx_ir.Graph) -> bool:
    condition = body.outputs[0]
    while (node := condition.producer()) is not None and node.op_type == "Identity" and node.inputs[0] is not None:
        condition = node.inputs[0]
    return condition.producer() is not None and onnx_ir.convenience.get_const_tensor(condition) is None
