"""Activations."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from entrepot.exporters.building import typed
from entrepot.exporters.keras.reading.step import Step, shape_of
from entrepot.exporters.keras.reading.table import operation


@operation("Relu", "Sigmoid", "Softplus", "Softsign")
def plain(step: Step, x: Any) -> ir.Value:
    """One operator."""
    return step.op(type(step.operation).__name__, step.value(x, step.dtype))


@operation("ReLU")
def bounded_relu(step: Step, x: Any) -> ir.Value:
    """With a slope, a largest value and a threshold."""
    given, value = step.operation, step.value(x, step.dtype)
    slope, most, least = float(given.negative_slope), given.max_value, float(given.threshold)
    if least == 0:
        result = step.op("LeakyRelu", value, alpha=slope) if slope else step.op("Relu", value)
        return result if most is None else step.op("Min", result, step.value(float(most), step.dtype))
    kept = step.op("Mul", value, step.build.cast(step.op("Greater", value, least), step.dtype))
    result = kept if most is None else step.op("Clip", kept, 0.0, float(most))
    below = step.op("Relu", step.op("Sub", step.value(least, step.dtype), value))
    return step.op("Sub", result, step.op("Mul", below, slope)) if slope else result


@operation("Relu6")
def relu6(step: Step, x: Any) -> ir.Value:
    """Between 0 and 6."""
    return step.op("Clip", step.value(x, step.dtype), 0.0, 6.0)


@operation("LeakyRelu")
def leaky_relu(step: Step, x: Any) -> ir.Value:
    """With a slope below zero."""
    return step.op("LeakyRelu", step.value(x, step.dtype), alpha=float(step.operation.negative_slope))


@operation("Elu", "Celu")
def elu(step: Step, x: Any) -> ir.Value:
    """Exponential below zero."""
    return step.op(type(step.operation).__name__, step.value(x, step.dtype), alpha=float(step.operation.alpha))


@operation("Selu")
def selu(step: Step, x: Any) -> ir.Value:
    """With the constants of its paper."""
    return step.op("Selu", step.value(x, step.dtype), alpha=1.6732632423543772, gamma=1.0507009873554805)


@operation("Gelu")
def gelu(step: Step, x: Any) -> ir.Value:
    """Exact, or by a hyperbolic tangent."""
    return step.op("Gelu", step.value(x, step.dtype), approximate="tanh" if step.operation.approximate else "none")


@operation("Silu")
def silu(step: Step, x: Any) -> ir.Value:
    """X sigmoid(x)."""
    value = step.value(x, step.dtype)
    return step.op("Mul", value, step.op("Sigmoid", value))


@operation("HardSigmoid")
def hard_sigmoid(step: Step, x: Any) -> ir.Value:
    """relu6(x + 3) / 6."""
    return step.op("HardSigmoid", step.value(x, step.dtype), alpha=1 / 6, beta=0.5)


@operation("HardSilu")
def hard_silu(step: Step, x: Any) -> ir.Value:
    """X hard_sigmoid(x)."""
    value = step.value(x, step.dtype)
    return step.op("Mul", value, step.op("HardSigmoid", value, alpha=1 / 6, beta=0.5))


@operation("LogSigmoid")
def log_sigmoid(step: Step, x: Any) -> ir.Value:
    """-softplus(-x)."""
    return step.op("Neg", step.op("Softplus", step.op("Neg", step.value(x, step.dtype))))


@operation("HardTanh")
def hard_tanh(step: Step, x: Any) -> ir.Value:
    """Between -1 and 1."""
    return step.op("Clip", step.value(x, step.dtype), -1.0, 1.0)


@operation("TanhShrink")
def tanh_shrink(step: Step, x: Any) -> ir.Value:
    """X - tanh(x)."""
    value = step.value(x, step.dtype)
    return step.op("Sub", value, step.op("Tanh", value))


@operation("SoftShrink")
def soft_shrink(step: Step, x: Any) -> ir.Value:
    """Towards zero by a threshold."""
    bound = float(step.operation.threshold)
    return step.op("Shrink", step.value(x, step.dtype), lambd=bound, bias=bound)


@operation("HardShrink")
def hard_shrink(step: Step, x: Any) -> ir.Value:
    """Zero up to a threshold."""
    return step.op("Shrink", step.value(x, step.dtype), lambd=float(step.operation.threshold), bias=0.0)


@operation("Threshold")
def threshold(step: Step, x: Any) -> ir.Value:
    """Another value up to a threshold."""
    value = step.value(x, step.dtype)
    other = step.value(float(step.operation.default_value), step.dtype)
    return step.op("Where", step.op("Greater", value, float(step.operation.threshold)), value, other)


@operation("Squareplus")
def squareplus(step: Step, x: Any) -> ir.Value:
    """(x + sqrt(x² + b)) / 2."""
    value = step.value(x, step.dtype)
    root = step.op("Sqrt", step.op("Add", step.op("Mul", value, value), float(step.operation.b)))
    return step.op("Mul", step.op("Add", value, root), 0.5)


@operation("SparsePlus")
def sparse_plus(step: Step, x: Any) -> ir.Value:
    """Zero below -1, x above 1, a parabola in between."""
    value = step.value(x, step.dtype)
    more = step.op("Add", value, 1.0)
    between = step.op("Mul", step.op("Mul", more, more), 0.25)
    low = step.op("Where", step.op("LessOrEqual", value, -1.0), step.value(0.0, step.dtype), between)
    return step.op("Where", step.op("Less", value, 1.0), low, value)


@operation("SparseSigmoid")
def sparse_sigmoid(step: Step, x: Any) -> ir.Value:
    """A straight line from -1 to 1."""
    return step.op("HardSigmoid", step.value(x, step.dtype), alpha=0.5, beta=0.5)


@operation("Glu")
def glu(step: Step, x: Any) -> ir.Value:
    """One half, gated by the other."""
    left, right = step.op("Split", step.value(x, step.dtype), outputs=2, axis=step.operation.axis, num_outputs=2)
    return step.op("Mul", left, step.op("Sigmoid", right))


@operation("Softmax", "LogSoftmax")
def softmax(step: Step, x: Any) -> ir.Value:
    """Along one axis, several, or all."""
    value, axis, name = step.value(x, step.dtype), step.operation.axis, type(step.operation).__name__
    axes = list(range(len(step.shape))) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    if len(axes) == 1:
        return step.op(name, value, axis=axes[0])
    shifted = step.op("Sub", value, step.op("ReduceMax", value, axes))
    whole = step.op("ReduceSum", step.op("Exp", shifted), axes)
    if name == "LogSoftmax":
        return step.op("Sub", shifted, step.op("Log", whole))
    return step.op("Div", step.op("Exp", shifted), whole)


@operation("Sparsemax")
def sparsemax(step: Step, x: Any) -> ir.Value:
    """The projection onto the simplex, along one axis."""
    value, axis = step.value(x, step.dtype), step.operation.axis
    size = step.op("Shape", value, start=axis, end=axis + 1 if axis != -1 else None)
    ordered, _ = step.op("TopK", value, size, outputs=2, axis=axis)
    sums = step.op("CumSum", typed(ordered, step.dtype, shape_of(value)), step.build.constant(axis, "int64"))
    count = step.build.cast(step.op("Range", 1, step.op("Add", step.op("Squeeze", size), 1), 1), step.dtype)
    steps = [1] * len(step.shape)
    steps[axis] = -1
    count = step.op("Reshape", count, steps)
    inside = step.op("Greater", step.op("Add", step.op("Mul", ordered, count), 1.0), sums)
    picked = step.build.cast(inside, step.dtype)
    number = step.op("ReduceSum", picked, [axis])
    total = step.op("ReduceSum", step.op("Mul", sums, picked), [axis])  # as Keras has it: sums of running sums
    bound = step.op("Div", step.op("Sub", total, 1.0), number)
    return step.op("Relu", step.op("Sub", value, bound))


@operation("Erfc")
def erfc(step: Step, x: Any) -> ir.Value:
    """1 - erf(x)."""
    return step.op("Sub", step.value(1.0, step.dtype), step.op("Erf", step.value(x, step.dtype)))
