"""Activations, their gradients, softmax and losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder
from entrepot.exporters.functions.exponentials import expm1, softplus
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed, number, where
from entrepot.exporters.tensorflow.sizes import int64, rank_of
from entrepot.exporters.tensorflow.table import translates

_ALPHA, _SCALE = 1.6732632423543772, 1.0507009873554805


@translates("Relu")
def relu(node: Node, build: Builder, x: Any) -> Any:
    """The larger of it and 0."""
    return computed(build, "Relu", x) if x.dtype != ir.DataType.INT64 else build.op("Max", x, 0)


@translates("Relu6")
def relu6(node: Node, build: Builder, x: Any) -> Any:
    """Between 0 and 6."""
    return computed(build, "Min", computed(build, "Max", x, number(build, 0, x)), number(build, 6, x))


@translates("Elu", "Selu")
def elu(node: Node, build: Builder, x: Any) -> Any:
    """By expm1 below 0."""
    below = expm1(build, computed(build, "Min", x, number(build, 0, x)))
    if node.op == "Elu":
        return where(build, computed(build, "Less", x, number(build, 0, x)), below, x)
    scaled = computed(build, "Mul", below, number(build, _ALPHA * _SCALE, x))
    above = computed(build, "Mul", x, number(build, _SCALE, x))
    return where(build, computed(build, "Less", x, number(build, 0, x)), scaled, above)


@translates("LeakyRelu")
def leaky_relu(node: Node, build: Builder, x: Any) -> Any:
    """A smaller slope below 0."""
    slope = computed(build, "Mul", x, number(build, node["alpha"], x))
    return where(build, computed(build, "Greater", x, number(build, 0, x)), x, slope)


@translates("Softplus")
def soft_plus(node: Node, build: Builder, x: Any) -> Any:
    """log(1 + exp(x))."""
    return softplus(build, x)


@translates("Softsign")
def soft_sign(node: Node, build: Builder, x: Any) -> Any:
    """X / (1 + |x|)."""
    return computed(build, "Div", x, computed(build, "Add", computed(build, "Abs", x), number(build, 1, x)))


@translates("Softmax", "LogSoftmax")
def softmax(node: Node, build: Builder, x: Any) -> Any:
    """Along the last axis."""
    return computed(build, node.op, x, axis=-1)


@translates("ReluGrad", "Relu6Grad", "LeakyReluGrad", "EluGrad", "SeluGrad")
def gradient_of_rectifier(node: Node, build: Builder, dy: Any, x: Any) -> Any:
    """The gradient where the unit is active, a share of it elsewhere."""
    zero = number(build, 0, x)
    positive = computed(build, "Greater", x, zero)
    if node.op == "ReluGrad":
        return where(build, positive, dy, zero)
    if node.op == "Relu6Grad":
        inside = build.op("And", positive, computed(build, "Less", x, number(build, 6, x)))
        return where(build, inside, dy, zero)
    if node.op == "LeakyReluGrad":
        return where(build, positive, dy, computed(build, "Mul", dy, number(build, node["alpha"], x)))
    added, above = (
        (1.0, dy) if node.op == "EluGrad" else (_ALPHA * _SCALE, computed(build, "Mul", dy, number(build, _SCALE, x)))
    )
    below = computed(build, "Mul", dy, computed(build, "Add", x, number(build, added, x)))
    return where(build, computed(build, "Less", x, zero), below, above)


@translates("SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "InvGrad", "ReciprocalGrad")
def gradient_from_result(node: Node, build: Builder, y: Any, dy: Any) -> Any:
    """By the result of the function."""

    def times(*values: Any) -> Any:
        product = values[0]
        for each in values[1:]:
            product = computed(build, "Mul", product, each)
        return product

    one = number(build, 1, y)
    if node.op == "SigmoidGrad":
        return times(dy, y, computed(build, "Sub", one, y))
    if node.op == "TanhGrad":
        return times(dy, computed(build, "Sub", one, times(y, y)))
    if node.op == "SqrtGrad":
        return computed(build, "Div", times(dy, number(build, 0.5, y)), y)
    if node.op == "RsqrtGrad":
        return times(dy, number(build, -0.5, y), y, y, y)
    return times(computed(build, "Neg", dy), y, y)


@translates("SoftplusGrad", "SoftsignGrad")
def gradient_of_soft(node: Node, build: Builder, dy: Any, x: Any) -> Any:
    """By the operand of the function."""
    if node.op == "SoftplusGrad":
        return computed(build, "Mul", dy, computed(build, "Sigmoid", x))
    size = computed(build, "Add", computed(build, "Abs", x), number(build, 1, x))
    return computed(build, "Div", dy, computed(build, "Mul", size, size))


@translates("SoftmaxCrossEntropyWithLogits")
def cross_entropy(node: Node, build: Builder, logits: Any, labels: Any) -> Any:
    """The loss of each row, and its gradient."""
    log = computed(build, "LogSoftmax", logits, axis=-1)
    loss = computed(build, "Neg", _row_sum(build, _times_known(build, labels, log)))
    return loss, computed(build, "Sub", computed(build, "Softmax", logits, axis=-1), labels)


@translates("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(node: Node, build: Builder, logits: Any, labels: Any) -> Any:
    """The same for the number of a class; NaN for one that there is not."""
    index = int64(build, labels)
    count = build.size(logits, rank_of(node) - 1)
    inside = build.op("And", build.op("GreaterOrEqual", index, 0), build.op("Less", index, count))
    safe = build.op("Unsqueeze", build.op("Where", inside, index, 0), [1])
    log = computed(build, "LogSoftmax", logits, axis=-1)
    loss = computed(build, "Neg", build.op("Squeeze", build.op("GatherElements", log, safe, axis=1), [1]))
    nothing = number(build, np.nan, logits)
    classes = build.op("Range", 0, count, 1)
    here = build.cast(build.op("Equal", build.op("Unsqueeze", index, [1]), classes), logits.dtype)
    slope = computed(build, "Sub", computed(build, "Softmax", logits, axis=-1), here)
    return where(build, inside, loss, nothing), where(build, build.op("Unsqueeze", inside, [1]), slope, nothing)


def _times_known(build: Builder, labels: Any, log: Any) -> Any:
    """0 for a label of 0, whatever the logarithm."""
    zero = number(build, 0, labels)
    return where(build, computed(build, "Equal", labels, zero), zero, computed(build, "Mul", labels, log))


def _row_sum(build: Builder, x: Any) -> Any:
    return computed(build, "ReduceSum", x, [-1], keepdims=0)
