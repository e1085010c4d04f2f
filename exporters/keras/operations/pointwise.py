"""Arithmetic, comparisons and functions of single elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
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


@operation("Clip")
def clip(step: Step, x: Any) -> ir.Value:
    """Between two bounds, in the type of the result; a bound may be left out."""
    value = step.value(x, step.dtype)
    for name, bound in (("Max", step.operation.x_min), ("Min", step.operation.x_max)):
        value = value if bound is None else step.op(name, value, step.value(bound, step.dtype))
    return value


@operation("Where")
def where(step: Step, condition: Any, x1: Any = None, x2: Any = None) -> ir.Value:
    """One of two."""
    if x1 is None or x2 is None:
        raise step.refuse("how many indices it returns depends on values")
    return step.op("Where", step.value(condition, "bool"), step.value(x1, step.dtype), step.value(x2, step.dtype))


@operation("Select")
def select(step: Step, condlist: Any, choicelist: Any, default: Any = 0) -> ir.Value:
    """The first choice whose condition holds."""
    result = step.value(default, step.dtype)
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = step.op("Where", step.value(condition, "bool"), step.value(choice, step.dtype), result)
    return result


@operation("Isnan", "Isinf", "Isfinite", "Isposinf", "Isneginf")
def special(step: Step, x: Any) -> ir.Value:
    """Which numbers are special; integers are not."""
    name, value = type(step.operation).__name__, step.value(x)
    if not is_float(value.dtype):
        value = step.build.cast(value, np.float32)
    if name == "Isfinite":
        return step.op("Not", step.op("Or", step.op("IsInf", value), step.op("IsNaN", value)))
    if name == "Isnan":
        return step.op("IsNaN", value)
    signs = {"Isposinf": {"detect_negative": 0}, "Isneginf": {"detect_positive": 0}}
    return step.op("IsInf", value, **signs.get(name, {}))


@operation("NanToNum")
def nan_to_num(step: Step, x: Any) -> ir.Value:
    """Special numbers replaced."""
    value, given = step.value(x, step.dtype), step.operation
    if not is_float(value.dtype):
        return value
    info = np.finfo(step.dtype.numpy())
    high = float(info.max) if given.posinf is None else float(given.posinf)
    low = float(info.min) if given.neginf is None else float(given.neginf)
    result = step.op("Where", step.op("IsNaN", value), step.value(float(given.nan), step.dtype), value)
    result = step.op("Where", step.op("IsInf", value, detect_negative=0), step.value(high, step.dtype), result)
    return step.op("Where", step.op("IsInf", value, detect_positive=0), step.value(low, step.dtype), result)


@operation("Isclose")
def isclose(step: Step, x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8) -> ir.Value:
    """Within a tolerance; equal infinities are."""
    left, right = (step.value(item, np.float32) for item in (x1, x2))
    bound = step.op("Add", step.op("Mul", step.op("Abs", right), rtol), atol)
    near = step.op("LessOrEqual", step.op("Abs", step.op("Sub", left, right)), bound)
    finite = step.op("Not", step.op("IsInf", right))
    close = step.op("Or", step.op("Equal", left, right), step.op("And", near, finite))
    if not step.operation.equal_nan:
        return close
    return step.op("Or", close, step.op("And", step.op("IsNaN", left), step.op("IsNaN", right)))


@operation("Heaviside")
def heaviside(step: Step, x1: Any, x2: Any) -> ir.Value:
    """A step at zero."""
    value, middle = step.value(x1, step.dtype), step.value(x2, step.dtype)
    one, zero = step.value(1, step.dtype), step.value(0, step.dtype)
    return step.op(
        "Where", step.op("Equal", value, zero), middle, step.op("Where", step.op("Greater", value, zero), one, zero)
    )


@operation("Signbit")
def signbit(step: Step, x: Any) -> ir.Value:
    """Of negative zero, too: its reciprocal is negative."""
    value = step.value(x)
    if not is_float(value.dtype):
        return step.op("Less", value, 0)
    zero = step.op("And", step.op("Equal", value, 0.0), step.op("Less", step.op("Reciprocal", value), 0.0))
    return step.op("Or", step.op("Less", value, 0.0), zero)


@operation("Sinc")
def sinc(step: Step, x: Any) -> ir.Value:
    """sin(πx) / πx."""
    value = step.op("Mul", step.value(x, step.dtype), math.pi)
    zero, one = step.op("Equal", value, 0.0), step.value(1.0, step.dtype)
    safe = step.op("Where", zero, one, value)
    return step.op("Where", zero, one, step.op("Div", step.op("Sin", safe), safe))


@operation("Cast", "SaturateCast")
def cast(step: Step, x: Any) -> ir.Value:
    """Into another type; with saturation, within its bounds."""
    value = step.value(x)
    saturates = type(step.operation).__name__ == "SaturateCast" and value.dtype != ir.DataType.BOOL
    if saturates and not is_float(step.dtype) and step.dtype != ir.DataType.BOOL:
        info = np.iinfo(step.dtype.numpy())
        value = step.op("Clip", value, *(step.value(bound, value.dtype) for bound in (info.min, info.max)))
    if is_float(value.dtype) and not is_float(step.dtype) and step.dtype not in _PLAIN:
        value = step.build.cast(value, np.int64)  # narrow integers wrap around, as frameworks let them
    return step.build.cast(value, step.dtype)


_PLAIN = (ir.DataType.BOOL, ir.DataType.INT32, ir.DataType.INT64)


@operation("StopGradient", "Copy", "ConvertToTensor", "Array", "Conjugate", "Conj", "Real")
def same(step: Step, x: Any) -> ir.Value:
    """The value itself, in the type of the result."""
    return step.op("Identity", step.value(x, step.dtype))


@operation("Imag", "Angle")
def of_reals(step: Step, x: Any) -> ir.Value:
    """Of real numbers: no imaginary part, and an angle of zero or half a turn."""
    value = step.value(x, step.dtype)
    if type(step.operation).__name__ == "Imag":
        return step.op("Mul", value, 0.0)
    return step.op("Where", step.op("Less", value, 0.0), step.value(math.pi, step.dtype), step.value(0.0, step.dtype))


@operation("Ldexp")
def ldexp(step: Step, x1: Any, x2: Any) -> ir.Value:
    """Times a power of two."""
    power = step.op("Pow", step.value(2.0, step.dtype), step.value(x2, step.dtype))
    return step.op("Mul", step.value(x1, step.dtype), power)
