"""Functions of numbers that ONNX has no operator for, as formulas."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from entrepot.exporters.keras.reading.step import Step
from entrepot.exporters.keras.reading.table import operation


@operation("Square")
def square(step: Step, x: Any) -> ir.Value:
    """The product with itself."""
    value = step.value(x, step.dtype)
    return step.op("And" if step.dtype == ir.DataType.BOOL else "Mul", value, value)


@operation("Rsqrt")
def rsqrt(step: Step, x: Any) -> ir.Value:
    """One by the root."""
    return step.op("Reciprocal", step.op("Sqrt", step.value(x, step.dtype)))


@operation("Cbrt")
def cbrt(step: Step, x: Any) -> ir.Value:
    """The root, with the sign of its operand."""
    value = step.value(x, step.dtype)
    return step.op("Mul", step.op("Sign", value), step.op("Pow", step.op("Abs", value), 1 / 3))


@operation("Expm1")
def expm1(step: Step, x: Any) -> ir.Value:
    """Exact for small operands, too: exp(x) - 1 is 2 tanh(x/2) / (1 - tanh(x/2))."""
    value = step.value(x, step.dtype)
    half = step.op("Tanh", step.op("Mul", value, 0.5))
    small = step.op("Div", step.op("Mul", half, 2.0), step.op("Sub", step.value(1.0, step.dtype), half))
    return step.op(
        "Where", step.op("Less", step.op("Abs", value), 1.0), small, step.op("Sub", step.op("Exp", value), 1.0)
    )


@operation("Log1p")
def log1p(step: Step, x: Any) -> ir.Value:
    """Exact for small operands, too: log(u) x / (u - 1) for u = 1 + x, as rounded."""
    value = step.value(x, step.dtype)
    more = step.op("Add", value, 1.0)
    rest = step.op("Sub", more, 1.0)
    tiny = step.op("Equal", rest, 0.0)
    plain = step.op("Or", tiny, step.op("IsInf", rest))
    safe = step.op("Where", plain, step.value(1.0, step.dtype), rest)
    exact = step.op("Mul", step.op("Log", more), step.op("Div", value, safe))
    return step.op("Where", tiny, value, step.op("Where", plain, step.op("Log", more), exact))


@operation("Log2", "Log10", "Exp2", "Deg2rad", "Rad2deg")
def scaled(step: Step, x: Any) -> ir.Value:
    """A function of e or of radians, times a constant."""
    name, value = type(step.operation).__name__, step.value(x, step.dtype)
    if name == "Exp2":
        return step.op("Pow", step.value(2.0, step.dtype), value)
    factors = {"Log2": 1 / math.log(2), "Log10": 1 / math.log(10), "Deg2rad": math.pi / 180, "Rad2deg": 180 / math.pi}
    return step.op("Mul", step.op("Log", value) if name.startswith("Log") else value, factors[name])


@operation("Logaddexp", "Logaddexp2")
def logaddexp(step: Step, x1: Any, x2: Any) -> ir.Value:
    """The larger one, and the rest beside it."""
    left, right = step.value(x1, step.dtype), step.value(x2, step.dtype)
    base = math.log(2) if type(step.operation).__name__.endswith("2") else 1.0
    gap = step.op("Neg", step.op("Abs", step.op("Sub", left, right)))
    rest = step.op("Log", step.op("Add", step.op("Exp", step.op("Mul", gap, base)), 1.0))
    same = step.op("Equal", left, right)  # of infinities, too
    exact = step.op("Add", step.op("Max", left, right), step.op("Div", rest, base))
    return step.op("Where", same, step.op("Add", left, math.log(2) / base), exact)


@operation("Arctan2")
def arctan2(step: Step, x1: Any, x2: Any) -> ir.Value:
    """The angle in the plane."""
    y, x = step.value(x1, step.dtype), step.value(x2, step.dtype)
    zero = step.value(0.0, step.dtype)
    none = step.op("Equal", x, 0.0)
    safe = step.op("Where", none, step.value(1.0, step.dtype), x)
    angle = step.op("Atan", step.op("Div", y, safe))
    side = step.op("Where", step.op("Less", y, 0.0), step.value(-math.pi, step.dtype), step.value(math.pi, step.dtype))
    turned = step.op("Where", step.op("Less", x, 0.0), step.op("Add", angle, side), angle)
    upright = step.op("Mul", step.op("Sign", y), math.pi / 2)
    flat = step.op("And", none, step.op("Equal", y, 0.0))
    return step.op("Where", flat, zero, step.op("Where", none, upright, turned))


@operation("Hypot")
def hypot(step: Step, x1: Any, x2: Any) -> ir.Value:
    """The length in the plane."""
    left, right = step.value(x1, step.dtype), step.value(x2, step.dtype)
    return step.op("Sqrt", step.op("Add", step.op("Mul", left, left), step.op("Mul", right, right)))


@operation("Heaviside")
def heaviside(step: Step, x1: Any, x2: Any) -> ir.Value:
    """A step at zero."""
    value, middle = step.value(x1, step.dtype), step.value(x2, step.dtype)
    one, zero = step.value(1, step.dtype), step.value(0, step.dtype)
    return step.op(
        "Where", step.op("Equal", value, zero), middle, step.op("Where", step.op("Greater", value, zero), one, zero)
    )


@operation("Sinc")
def sinc(step: Step, x: Any) -> ir.Value:
    """sin(πx) / πx."""
    value = step.op("Mul", step.value(x, step.dtype), math.pi)
    zero, one = step.op("Equal", value, 0.0), step.value(1.0, step.dtype)
    safe = step.op("Where", zero, one, value)
    return step.op("Where", zero, one, step.op("Div", step.op("Sin", safe), safe))


@operation("Ldexp")
def ldexp(step: Step, x1: Any, x2: Any) -> ir.Value:
    """Times a power of two."""
    power = step.op("Pow", step.value(2.0, step.dtype), step.value(x2, step.dtype))
    return step.op("Mul", step.value(x1, step.dtype), power)
