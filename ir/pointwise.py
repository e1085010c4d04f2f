"""What the operators of a model do with elements: each on its own, by their order, or until a condition holds."""

from __future__ import annotations

import onnx_ir

# numbers in, a number at the same place out
_ARITHMETIC = """
Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu
Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less
LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh
Softplus Softsign Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu Where Xor
"""
# the same numbers at other places, or none looked at
_MOVEMENT = """
Constant ConstantOfShape Expand Flatten Identity Reshape Shape Size Squeeze Tile Transpose Unsqueeze
"""
_POINTWISE = frozenset(_ARITHMETIC.split() + _MOVEMENT.split())


def is_pointwise(model: onnx_ir.Model) -> bool:
    """Whether no element of a result sums up, or chooses between, several elements of an input.

    Such a model has no cancellation except within an element: each result can be judged by its own size.
    """
    return not model.functions and all(
        not node.domain and node.op_type in _POINTWISE for node in onnx_ir.traversal.RecursiveGraphIterator(model.graph)
    )


_CHOOSING = frozenset(["ArgMax", "ArgMin", "Hardmax", "NonMaxSuppression", "TopK", "Unique"])


def chooses(model: onnx_ir.Model) -> bool:
    """Whether a result may depend on which of two equal elements comes first."""
    return any(node.op_type in _CHOOSING for node in onnx_ir.traversal.RecursiveGraphIterator(model.graph))


def may_not_end(model: onnx_ir.Model) -> bool:
    """Whether a loop ends by a condition that it computes: for unusual values it may never end."""
    nodes = onnx_ir.traversal.RecursiveGraphIterator(model.graph)
    return any(node.op_type == "Loop" and _computes_condition(node.attributes["body"].as_graph()) for node in nodes)


def _computes_condition(body: onnx_ir.Graph) -> bool:
    condition = body.outputs[0]
    while (node := condition.producer()) is not None and node.op_type == "Identity" and node.inputs[0] is not None:
        condition = node.inputs[0]
    return condition.producer() is not None and onnx_ir.convenience.get_const_tensor(condition) is None
