"""Operators of ONNX on each element: arithmetic, comparisons, rounding, logic."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from entrepot.exporters.keras.dtypes import is_float
from entrepot.exporters.keras.reading.step import Step
from entrepot.exporters.keras.reading.table import operation

_UNARY = {
    "Absolute": "Abs", "Abs": "Abs", "Fabs": "Abs", "Negative": "Neg", "Sign": "Sign",
    "Exp": "Exp", "Log": "Log", "Sqrt": "Sqrt", "Reciprocal": "Reciprocal",
    "Sin": "Sin", "Cos": "Cos", "Tan": "Tan", "Sinh": "Sinh", "Cosh": "Cosh", "Tanh": "Tanh",
    "Arcsin": "Asin", "Arccos": "Acos", "Arctan": "Atan",
    "Arcsinh": "Asinh", "Arccosh": "Acosh", "Arctanh": "Atanh", "Erf": "Erf",
}  # fmt: skip

_ROUNDING = {"Ceil": "Ceil", "Floor": "Floor"}

_BINARY = {
    "Add": "Add", "Subtract": "Sub", "Multiply": "Mul", "Divide": "Div", "TrueDivide": "Div", "Power": "Pow",
}  # fmt: skip

_COMPARISONS = {
    "Equal": "Equal", "Greater": "Greater", "GreaterEqual": "GreaterOrEqual",
    "Less": "Less", "LessEqual": "LessOrEqual",
}  # fmt: skip

_LOGICAL = {"LogicalAnd": "And", "LogicalOr": "Or", "LogicalXor": "Xor"}


@operation(*_UNARY)
def unary(step: Step, x: Any) -> ir.Value:
    """One operator, in the type of the result."""
    return step.op(_UNARY[type(step.operation).__name__], step.value(x, step.dtype))


@operation(*_ROUNDING)
def rounding(step: Step, x: Any) -> ir.Value:
    """Integers are what they are."""
    value = step.value(x, step.dtype)
    return step.op(_ROUNDING[type(step.operation).__name__], value) if is_float(value.dtype) else value


@operation("Trunc")
def trunc(step: Step, x: Any) -> ir.Value:
    """Towards zero."""
    value = step.value(x, step.dtype)
    if not is_float(value.dtype):
        return value
    return step.op("Mul", step.op("Sign", value), step.op("Floor", step.op("Abs", value)))


@operation("Round")
def rounded(step: Step, x: Any) -> ir.Value:
    """Half to even, also to decimals."""
    value, decimals = step.value(x, step.dtype), step.operation.decimals
    if not is_float(value.dtype):
        return value
    if decimals == 0:
        return step.op("Round", value)
    factor = float(10**decimals)
    return step.op("Div", step.op("Round", step.op("Mul", value, factor)), factor)


@operation(*_BINARY)
def binary(step: Step, x1: Any, x2: Any) -> ir.Value:
    """One operator, in the type of the result."""
    name = _BINARY[type(step.operation).__name__]
    left, right = step.value(x1, step.dtype), step.value(x2, step.dtype)
    if step.dtype == ir.DataType.BOOL:  # as NumPy adds and multiplies truth
        name = {"Add": "Or", "Mul": "And"}[name]
    return step.op(name, left, right)


@operation("Maximum", "Fmax", "Minimum", "Fmin")
def extreme(step: Step, x1: Any, x2: Any) -> ir.Value:
    """The larger or smaller one; not a number wins, except in Fmax and Fmin."""
    name = type(step.operation).__name__
    left, right = step.value(x1, step.dtype), step.value(x2, step.dtype)
    if name.startswith("F"):
        both = left, right
        left = step.op("Where", step.op("IsNaN", both[0]), both[1], both[0]) if is_float(step.dtype) else left
        right = step.op("Where", step.op("IsNaN", both[1]), both[0], both[1]) if is_float(step.dtype) else right
    return step.op("Max" if "ax" in name else "Min", left, right)


@operation(*_COMPARISONS)
def comparison(step: Step, x1: Any, x2: Any) -> ir.Value:
    """In the type that both have together."""
    return step.op(_COMPARISONS[type(step.operation).__name__], *step.operands(x1, x2))


@operation("NotEqual")
def not_equal(step: Step, x1: Any, x2: Any) -> ir.Value:
    """The opposite of being equal."""
    return step.op("Not", step.op("Equal", *step.operands(x1, x2)))


@operation(*_LOGICAL)
def logical(step: Step, x1: Any, x2: Any) -> ir.Value:
    """Of whether elements are not zero."""
    return step.op(_LOGICAL[type(step.operation).__name__], step.value(x1, "bool"), step.value(x2, "bool"))


@operation("LogicalNot")
def logical_not(step: Step, x: Any) -> ir.Value:
    """Of whether elements are not zero."""
    return step.op("Not", step.value(x, "bool"))


@operation("Mod", "Fmod")
def mod(step: Step, x1: Any, x2: Any) -> ir.Value:
    """With the sign of the divisor; Fmod has that of the dividend."""
    left, right = step.value(x1, step.dtype), step.value(x2, step.dtype)
    if type(step.operation).__name__ == "Fmod":
        return step.op("Mod", left, right, fmod=1)
    if not is_float(step.dtype):
        return step.op("Mod", left, right)
    rest = step.op("Mod", left, right, fmod=1)
    differs = step.op("Less", step.op("Mul", step.op("Sign", rest), step.op("Sign", right)), 0.0)
    return step.op("Where", differs, step.op("Add", rest, right), rest)


@operation("FloorDivide")
def floor_divide(step: Step, x1: Any, x2: Any) -> ir.Value:
    """Rounded down."""
    left, right = step.value(x1, step.dtype), step.value(x2, step.dtype)
    if is_float(step.dtype):
        return step.op("Floor", step.op("Div", left, right))
    rest = step.op("Mod", left, right)
    return step.op("Div", step.op("Sub", left, rest), right)


@operation("DivideNoNan")
def divide_no_nan(step: Step, x1: Any, x2: Any) -> ir.Value:
    """Zero where the divisor is."""
    left, right = step.value(x1, step.dtype), step.value(x2, step.dtype)
    zero = step.op("Equal", right, 0.0)
    safe = step.op("Where", zero, step.value(1.0, step.dtype), right)
    return step.op("Where", zero, step.value(0.0, step.dtype), step.op("Div", left, safe))
