"""Elementwise functions of one tensor.

Version 6 dropped ``consumed_inputs``; later versions only add element types. What was introduced late is spelled out
in the element type at hand, exactly unless said otherwise.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.consumed import hint_dropped
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, decomposition, impossible, keep, unchanged

for _name in ("Abs", "Ceil", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Sqrt"):
    hint_dropped(_name)
    unchanged(_name, 6, 13)
for _name in ("Acos", "Asin", "Atan", "Cos", "Sin", "Tan"):
    impossible(_name, 7, 0, "no trigonometric operator existed before opset 7")
    unchanged(_name, 7, 22)
for _name in ("Acosh", "Asinh", "Atanh", "Cosh", "Sinh"):
    unchanged(_name, 9, 22)
unchanged("Sign", 9, 13)
unchanged("IsNaN", 9, 13, 20)
unchanged("IsInf", 10, 20)
unchanged("Round", 11, 22)
unchanged("Det", 11, 22)
impossible("Det", 11, 0, "no operator computed determinants before opset 11")
adapter("Erf", 13, 9)(keep)


@adapter("Erf", 9, 13)
def erf_of_integers(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Compute integers, which version 13 does not take, in double."""
    dtype = op.dtype(op.x())
    if dtype is None or dtype.is_floating_point():
        return None
    return op.Cast(op.Erf(op.Cast(op.x(), to=int(ir.DataType.DOUBLE))), to=int(dtype))


@decomposition("Erf", 9)
def erf(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Abramowitz and Stegun 7.1.26 in float32, within 1.5e-7; float16 would lose digits in the series."""
    given = op.need_dtype(op.x())
    if given not in (ir.DataType.FLOAT, ir.DataType.FLOAT16):
        op.refuse(f"erf is only expressible to 1.5e-7 before opset 9, too coarse for {given.name.lower()}")
    if given == ir.DataType.FLOAT:
        return _erf(op, op.x())
    return op.Cast(_erf(op, op.Cast(op.x(), to=int(ir.DataType.FLOAT))), to=int(given))


def _erf(op: OpBuilder, x: ir.Value) -> ir.Value:
    dtype = ir.DataType.FLOAT

    def number(value: float) -> ir.Value:
        return op.const(value, dtype=dtype)

    absolute = op.Abs(x)
    t = op.Reciprocal(op.Add(op.Mul(absolute, number(0.3275911)), number(1)))
    series: ir.Value = number(1.061405429)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = op.Add(op.Mul(series, t), number(coefficient))
    tail = op.Mul(op.Mul(series, t), op.Exp(op.Neg(op.Mul(absolute, absolute))))
    result: ir.Value = op.Mul(_sign(op, x, dtype), op.Sub(number(1), tail))
    return result


def _sign(op: OpBuilder, x: ir.Value, dtype: ir.DataType) -> ir.Value:
    if not dtype.is_floating_point():  # a float keeps the sign of an integer, and only floats were compared
        x = op.Cast(x, to=int(ir.DataType.FLOAT))
    zero = op.const(0, like=x)
    result: ir.Value = op.Sub(
        op.Cast(op.Greater(x, zero), to=int(dtype)),
        op.Cast(op.Less(x, zero), to=int(dtype)),
    )
    return result


@decomposition("Sign", 9)
def sign(op: OpBuilder, _node: ir.Node) -> Replacement:
    """(x > 0) - (x < 0)."""
    return _sign(op, op.x(), op.need_dtype(op.x()))


@decomposition("IsNaN", 9)
def is_nan(op: OpBuilder, _node: ir.Node) -> Replacement:
    """A number is below 0 or above -1; NaN is neither."""
    x, dtype = op.x(), op.need_dtype(op.x())
    number = op.Or(op.Less(x, op.const(0, dtype=dtype)), op.Greater(x, op.const(-1, dtype=dtype)))
    return op.Not(number)


@decomposition("IsInf", 10)
def is_inf(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Beyond the largest finite number, on the sides asked for."""
    x, dtype = op.x(), op.need_dtype(op.x())
    largest = np.array(dtype.max, dtype.numpy())
    positive, negative = op.attr("detect_positive", 1), op.attr("detect_negative", 1)
    above = op.Greater(x, op.const(largest, dtype=dtype))
    below = op.Less(x, op.const(-largest, dtype=dtype))
    if positive and negative:
        result: ir.Value = op.Or(above, below)
    elif positive or negative:
        result = above if positive else below
    else:
        result = op.And(above, below)
    return result


@decomposition("Round", 11)
def round_half_to_even(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Floor, plus one above the half, and at the half when the floor is odd."""
    x, dtype = op.x(), op.need_dtype(op.x())
    half = op.const(0.5, dtype=dtype)
    floor = op.Floor(x)
    rest = op.Sub(x, floor)
    halved = op.Mul(floor, half)
    odd = op.Greater(op.Sub(halved, op.Floor(halved)), op.const(0, dtype=dtype))
    up = op.Or(op.Greater(rest, half), op.And(op.Not(op.Less(rest, half)), odd))
    return op.Add(floor, op.Cast(up, to=int(dtype)))


def _halves(op: OpBuilder) -> tuple[ir.Value, ir.Value, ir.DataType]:
    dtype = op.need_dtype(op.x())
    half = op.const(0.5, dtype=dtype)
    return op.Mul(op.Exp(op.x()), half), op.Mul(op.Exp(op.Neg(op.x())), half), dtype


@decomposition("Cosh", 9)
def cosh(op: OpBuilder, _node: ir.Node) -> Replacement:
    """(e^x + e^-x) / 2."""
    rising, falling, _ = _halves(op)
    return op.Add(rising, falling)


@decomposition("Sinh", 9)
def sinh(op: OpBuilder, _node: ir.Node) -> Replacement:
    """(e^x - e^-x) / 2."""
    rising, falling, _ = _halves(op)
    return op.Sub(rising, falling)


@decomposition("Acosh", 9)
def acosh(op: OpBuilder, _node: ir.Node) -> Replacement:
    """log(x + sqrt(x - 1) sqrt(x + 1)), which does not overflow before x does."""
    x = op.x()
    one = op.const(1, like=x)
    root = op.Mul(op.Sqrt(op.Sub(x, one)), op.Sqrt(op.Add(x, one)))
    return op.Log(op.Add(x, root))


@decomposition("Asinh", 9)
def asinh(op: OpBuilder, _node: ir.Node) -> Replacement:
    """sign(x) log(|x| + sqrt(x² + 1)): on |x|, since a negative x would cancel."""
    x, dtype = op.x(), op.need_dtype(op.x())
    absolute = op.Abs(x)
    root = op.Sqrt(op.Add(op.Mul(absolute, absolute), op.const(1, dtype=dtype)))
    return op.Mul(_sign(op, x, dtype), op.Log(op.Add(absolute, root)))


@decomposition("Atanh", 9)
def atanh(op: OpBuilder, _node: ir.Node) -> Replacement:
    """log((1 + x) / (1 - x)) / 2."""
    x, one = op.x(), op.const(1, like=op.x())
    ratio = op.Div(op.Add(one, x), op.Sub(one, x))
    return op.Mul(op.Log(ratio), op.const(0.5, like=x))
