"""Functions of one real element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
from jax import lax

from entrepot.exporters.jax.step import Step, limits_of
from entrepot.exporters.jax.table import rule

_SAME = {
    "abs": "Abs", "ceil": "Ceil", "exp": "Exp", "floor": "Floor", "log": "Log", "sqrt": "Sqrt", "tanh": "Tanh",
    "sin": "Sin", "cos": "Cos", "logistic": "Sigmoid", "erf": "Erf",
}  # fmt: skip
_SINGLE = {
    "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh",
    "cosh": "Cosh", "sinh": "Sinh", "tan": "Tan",
}  # fmt: skip
WIDE = ("float64",)


def _direct(op_type: str) -> Callable[[Step, ir.Value], ir.Value]:
    def translate(step: Step, x: ir.Value) -> ir.Value:
        result: ir.Value = step.op(op_type, x)
        return result

    return translate


for _name, _op_type in (_SAME | _SINGLE).items():
    rule(_name)(_direct(_op_type))


@rule("neg")
def neg(step: Step, x: ir.Value) -> ir.Value:
    """Neg, which has no unsigned integers."""
    if step.dtype.kind == "u":
        return step.op("Sub", step.number(0, x), x)
    return step.op("Neg", x)


@rule("sign")
def sign(step: Step, x: ir.Value) -> ir.Value:
    """Sign; of a NaN NaN, of a zero that zero."""
    found = step.op("Sign", x)
    if step.dtype.kind in "iu":
        return found
    zero_or_nan = step.op("Or", step.op("IsNaN", x), step.op("Equal", x, 0.0))
    return step.op("Where", zero_or_nan, x, found)


@rule("rsqrt")
def rsqrt(step: Step, x: ir.Value) -> ir.Value:
    """1 / sqrt(x)."""
    return step.op("Reciprocal", step.op("Sqrt", x))


@rule("square")
def square(step: Step, x: ir.Value) -> ir.Value:
    """X * x."""
    return step.op("Mul", x, x)


@rule("integer_pow")
def integer_pow(step: Step, x: ir.Value) -> ir.Value:
    """Products of squares, as XLA computes it."""
    power = abs(step.params["y"])
    result, factor = None, x
    while power:
        if power & 1:
            result = factor if result is None else step.op("Mul", result, factor)
        power >>= 1
        factor = step.op("Mul", factor, factor) if power else factor
    if result is None:
        result = step.filled(step.outs[0].shape, 1, step.dtype)
    return step.op("Reciprocal", result) if step.params["y"] < 0 else result


@rule("exp2")
def exp2(step: Step, x: ir.Value) -> ir.Value:
    """2 ** x."""
    return step.op("Pow", step.number(2, x), x)


@rule("expm1")
def expm1(step: Step, x: ir.Value) -> ir.Value:
    """exp(x) - 1 without cancellation: (e - 1) * x / log(e), where e is rounded."""
    grown = step.op("Exp", x)
    less = step.op("Sub", grown, 1.0)
    is_near = step.op("Less", step.op("Abs", x), 0.5)
    safe = step.op("Where", step.op("And", is_near, step.op("Not", step.op("Equal", grown, 1.0))), grown, 2.0)
    near = step.op("Div", step.op("Mul", less, x), step.op("Log", safe))
    near = step.op("Where", step.op("Equal", grown, 1.0), x, near)
    return step.op("Where", is_near, near, less)


@rule("log1p")
def log1p(step: Step, x: ir.Value) -> ir.Value:
    """log(1 + x) without cancellation: log(s) * x / (s - 1), where s is the rounded sum."""
    total = step.op("Add", x, 1.0)
    far = step.op("Log", total)
    less = step.op("Sub", total, 1.0)
    is_near = step.op("Less", step.op("Abs", x), 0.5)
    safe = step.op("Where", step.op("And", is_near, step.op("Not", step.op("Equal", less, 0.0))), less, 1.0)
    near = step.op("Div", step.op("Mul", far, x), safe)
    near = step.op("Where", step.op("Equal", less, 0.0), x, near)
    return step.op("Where", is_near, near, far)


@rule("cbrt")
def cbrt(step: Step, x: ir.Value) -> ir.Value:
    """The cube root of the size, with the sign; computed in float64."""
    wide = step.build.cast(x, np.float64)
    root = step.op("Mul", step.op("Sign", wide), step.op("Pow", step.op("Abs", wide), 1 / 3))
    special = step.op("Or", step.op("Equal", wide, 0.0), step.op("IsNaN", wide))
    return step.build.cast(step.op("Where", special, wide, root), x.dtype)


@rule("round")
def round_(step: Step, x: ir.Value) -> ir.Value:
    """Round, half to even; or half away from zero."""
    if step.params["rounding_method"] == lax.RoundingMethod.TO_NEAREST_EVEN:
        return step.op("Round", x)
    size = step.op("Abs", x)
    whole = step.op("Floor", size)
    is_more = step.op("GreaterOrEqual", step.op("Sub", size, whole), 0.5)
    rounded = step.op("Where", is_more, step.op("Add", whole, 1.0), whole)
    return step.op("Where", step.op("Less", x, 0.0), step.op("Neg", rounded), rounded)


@rule("is_finite")
def is_finite(step: Step, x: ir.Value) -> ir.Value:
    """Neither infinite nor NaN; of integers, all."""
    if np.dtype(step.ins[0].dtype).kind in "iub":
        return step.filled(step.outs[0].shape, True, np.bool_)
    return step.op("Not", step.op("Or", step.op("IsInf", _plain(step, x)), step.op("IsNaN", _plain(step, x))))


def _plain(step: Step, x: ir.Value) -> ir.Value:
    return x if x.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE) else step.build.cast(x, np.float32)


@rule("not")
def not_(step: Step, x: ir.Value) -> ir.Value:
    """Of each truth value, or of each bit."""
    return step.op("Not" if step.dtype == np.bool_ else "BitwiseNot", x)


@rule(
    "copy",
    "copy_p",
    "stop_gradient",
    "optimization_barrier",
    "real",
    "pvary",
    "name",
    "device_put",
    "reduce_precision_same",
    "sharding_constraint",
    "layout_constraint",
    "reshard",
    "pbroadcast",
    "stage",
    "pin",
    "unpin",
    "conj_real",
    "create_linear",
)
def same(step: Step, *values: ir.Value) -> list[ir.Value]:
    """What changes nothing."""
    return list(values)


@rule("reduce_precision")
def reduce_precision(step: Step, x: ir.Value) -> ir.Value:
    """Rounded to the type with so many bits, and back."""
    bits = step.params["exponent_bits"], step.params["mantissa_bits"]
    info = limits_of(step.dtype)
    if bits == (info.nexp, info.nmant):
        return x
    kinds = {(5, 10): ir.DataType.FLOAT16, (8, 7): ir.DataType.BFLOAT16, (8, 23): ir.DataType.FLOAT}
    if bits not in kinds:
        raise step.unsupported(f"no type has {bits[0]} bits of exponent and {bits[1]} of mantissa")
    return step.build.cast(step.build.cast(x, kinds[bits]), x.dtype)


@rule("imag")
def imag(step: Step, x: ir.Value) -> ir.Value:
    """Of a real number, zero."""
    return step.op("Mul", x, 0.0)
