"""Remainders of floats, for which there was no operator before opset 10."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.loop import loop
from entrepot.ir.opset.builder import OpBuilder


def remainder_of_floats(op: OpBuilder, x: ir.Value, y: ir.Value, dtype: ir.DataType) -> ir.Value:
    """Long division in double by 24 bits of the quotient at a time: each product and difference is exact.

    The quotient of two floats has up to 277 bits. What is not finite, and what is divided by 0, is left to the end.
    """
    if dtype == ir.DataType.DOUBLE:
        return _remainder_of_doubles(op, x, y)
    double, single = int(ir.DataType.DOUBLE), int(ir.DataType.FLOAT)
    x, y = op.Cast(x, to=single), op.Cast(y, to=single)
    largest, size = op.const(np.finfo(np.float32).max), op.Abs(y)
    infinite = op.Mul(op.Cast(op.Greater(size, largest), to=double), op.const(2.0**200))
    divisor = op.Add(op.Cast(op.Min(size, largest), to=double), infinite)
    rest = op.Cast(op.Abs(x), to=double)
    for step in reversed(range(12)):
        shifted = op.Mul(divisor, op.const(2.0 ** (24 * step)))
        digit = op.Cast(op.Cast(op.Div(rest, shifted), to=int(ir.DataType.INT64)), to=double)
        rest = op.Sub(rest, op.Mul(digit, shifted))
    result: ir.Value = op.Cast(_signed(op, op.Cast(rest, to=single), x, y), to=int(dtype))
    return result


def _signed(op: OpBuilder, rest: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    """With the sign of the dividend; NaN for what is not finite or divided by 0."""
    zero, one = op.const(0, like=x), op.const(1, like=x)
    negative = op.Cast(op.Less(x, zero), to=int(op.need_dtype(x)))
    signed = op.Mul(rest, op.Sub(one, op.Add(negative, negative)))
    result: ir.Value = op.Add(signed, op.Add(op.Mul(x, zero), op.Div(zero, y)))
    return result


DOUBLINGS = 2100
"""More bits than any quotient of doubles has."""


def _remainder_of_doubles(op: OpBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Long division bit by bit: double the divisor as often as it fits, then halve and subtract it."""
    if op.around.targets.get("", op.version) < 8:
        op.refuse("the remainder of doubles is not exactly expressible before opset 8")
    double, one, largest = int(ir.DataType.DOUBLE), op.const(1.0), op.const(np.finfo(np.float64).max)
    infinite = op.Cast(op.Greater(op.Abs(y), largest), to=double)
    nothing = op.Mul(op.Cast(op.Less(x, x), to=double), op.Cast(op.Less(y, y), to=double))  # in the common shape
    divisor, dividend = op.Add(op.Min(op.Abs(y), largest), nothing), op.Add(op.Abs(x), nothing)

    def grow(body: OpBuilder, multiple: ir.Value) -> list[ir.Value]:
        doubled = body.Add(multiple, multiple)
        fits = body.And(body.Not(body.Greater(doubled, dividend)), body.Greater(doubled, multiple))
        return [fits, body.Mul(multiple, body.Add(body.Cast(fits, to=double), one))]

    def subtract(body: OpBuilder, multiple: ir.Value, rest: ir.Value) -> list[ir.Value]:
        fits = body.Cast(body.Not(body.Greater(multiple, rest)), to=double)
        larger = body.Greater(multiple, divisor)
        halved = body.Sub(one, body.Mul(body.Cast(larger, to=double), body.const(0.5)))
        return [larger, body.Mul(multiple, halved), body.Sub(rest, body.Mul(multiple, fits))]

    multiple = _while(op, grow, divisor)[0]
    rest = _while(op, subtract, multiple, dividend)[1]
    rest = op.Add(op.Mul(rest, op.Sub(one, infinite)), op.Mul(dividend, infinite))
    return _signed(op, rest, x, y)


def _while(op: OpBuilder, write: Callable[..., list[ir.Value]], *carried: ir.Value) -> list[ir.Value]:
    """A Loop that goes on as long as the first result of its body is true anywhere."""

    def asking(body: OpBuilder, _turn: ir.Value, *values: ir.Value) -> list[ir.Value]:
        again, *results = write(body, *values)
        count = body.ReduceSum(body.Cast(again, to=int(ir.DataType.FLOAT)), keepdims=0)
        return [body.Greater(count, body.const(np.float32(0))), *results]

    return loop(op, op.const(np.int64(DOUBLINGS)), carried, asking, asks=True)
