"""Where the sign of a zero shows: 0.0 and -0.0 are equal, and few operators tell them apart."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.subgraphs import subgraphs
from entrepot.ir.traits import traits_of

_SAME = """
Abs ArgMax ArgMin Conv ConvTranspose Cos Cosh Einsum Equal Exp Gemm Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual
LogSoftmax MatMul NonZero ReduceL1 ReduceL2 ReduceLogSumExp ReduceMean ReduceSum ReduceSumSquare Shape Sigmoid Size
Softmax Softplus
"""
"""Their results are the same for both, or are sums, whose zeros have the sign that the order of the terms gives."""

_EQUAL = """
Add Atan Cast Ceil Clip Elu Erf Floor Gelu LayerNormalization LeakyRelu Max Min Mul Neg Pad RMSNormalization Relu Round
Sign Sin Sqrt Sub Sum Tanh Where
"""
"""Their results differ at most in the signs of zeros, too, as those of all that only moves elements."""

_FORGET, _PASS_ON = frozenset(_SAME.split()), frozenset(_EQUAL.split())

_FAR = 256
"""Nodes: where more depend on a value, it is not followed."""


def shows_sign(value: ir.Value, top: ir.Graph) -> bool:
    """Whether more than the sign of a zero may come out differently where a zero in ``value`` has the other sign.

    A result of ``top``, the main graph, may have zeros of either sign: nothing that compares numbers sees it.
    """
    pending, seen = [value], set[ir.Value]()
    while pending:
        each = pending.pop()
        if each in seen:
            continue
        seen.add(each)
        if len(seen) > _FAR or (each.is_graph_output() and each.graph is not top):
            return True
        for node, place in each.uses():
            if _tells(node, place):
                return True
            if node.op_type not in _FORGET:
                pending.extend(node.outputs)
    return False


def _tells(node: ir.Node, place: int) -> bool:
    if node.domain or any(True for _ in subgraphs(node)):
        return True
    if node.op_type == "Div":
        return place == 1
    if node.op_type == "Pow":
        exponent = None if node.inputs[1] is None else ir.convenience.get_const_tensor(node.inputs[1])
        return place == 1 or exponent is None or not bool((exponent.numpy() > 0).all())
    return node.op_type not in _FORGET | _PASS_ON and not traits_of(node).moves
