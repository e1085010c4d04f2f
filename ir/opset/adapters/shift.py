"""BitShift: version 28 takes signed types, and says what a shift by more than the width gives."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, decomposition, extended

extended("BitShift", 11, 28)


@adapter("BitShift", 28, 11)
def shift_without_sign(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Shift signed types as unsigned ones of the same width.

    To the right, -1 - x takes the place of a negative x: its bits are the complement, so that the zeros shifted in
    stand for copies of the sign.
    """
    x, y, dtype = op.x(0), op.x(1), op.need_dtype(op.x(0))
    if not dtype.is_signed():
        return None
    unsigned, right = ir.DataType[f"U{dtype.name}"], op.attr("direction") == "RIGHT"
    zero, width = op.const(0, dtype=dtype), op.const(dtype.bitwidth - 1, dtype=dtype)
    beyond = op.Or(op.Less(y, zero), op.Greater(y, width))
    negative = op.Less(x, zero)
    bits = op.Where(negative, op.BitwiseNot(x), x) if right else x
    amount = op.Where(beyond, zero, y)
    sides = [op.Cast(value, to=int(unsigned)) for value in (bits, amount)]
    shifted = op.Cast(op.BitShift(*sides, direction=op.attr("direction")), to=int(dtype))
    moved = op.Where(beyond, zero, shifted)
    return op.Where(negative, op.BitwiseNot(moved), moved) if right else moved


@decomposition("BitShift", 11)
def constant_shift(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Multiply or divide by a known power of two."""
    x, dtype = op.x(0), op.need_dtype(op.x(0))
    shift = op.need_known(1, "the shift").astype(np.uint64)
    if (shift >= dtype.bitwidth).any():
        op.refuse("it shifts by more than the width of its type")
    factor = op.const(np.left_shift(np.uint64(1), shift), dtype=dtype)
    if op.attr("direction") == "LEFT":
        return op.Mul(x, factor)
    return op.Div(x, factor) if not dtype.is_signed() else _shift_right(op, x, factor, dtype)


def _shift_right(op: OpBuilder, x: ir.Value, factor: ir.Value, dtype: ir.DataType) -> ir.Value:
    """Divide -1 - x instead of a negative x: division rounds towards zero, a shift downwards."""
    negative = op.Cast(op.Less(x, op.const(0, dtype=dtype)), to=int(dtype))
    flip = op.Sub(op.const(1, dtype=dtype), op.Add(negative, negative))
    divided = op.Div(op.Sub(op.Mul(x, flip), negative), factor)
    return op.Sub(op.Mul(divided, flip), negative)
