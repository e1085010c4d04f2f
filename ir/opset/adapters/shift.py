"""BitShift: version 28 takes signed types, and defines a shift by more than the width."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, decomposition, extended

extended("BitShift", 11, 28)

INT64 = int(ir.DataType.INT64)


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
def shift_by_a_factor(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Multiply or divide by a power of two; a shift by the width of the type or more leaves 0."""
    x, dtype = op.x(0), op.need_dtype(op.x(0))
    shift = op.known(op.x(1))
    near = None if shift is None or (shift.astype(np.uint64) >= dtype.bitwidth).any() else shift.astype(np.uint64)
    if near is not None:
        return _moved(op, x, op.const(np.left_shift(np.uint64(1), near), dtype=dtype))
    # as a float a huge shift stays huge, and before opset 9 only floats were compared
    inside = op.Less(op.Cast(op.x(1), to=int(ir.DataType.FLOAT)), op.const(np.float32(dtype.bitwidth)))
    amount = op.Mul(op.Cast(op.x(1), to=INT64), op.Cast(inside, to=INT64))
    powers = op.const(np.left_shift(np.uint64(1), np.arange(dtype.bitwidth, dtype=np.uint64)), dtype=dtype)
    return op.Mul(_moved(op, x, op.Gather(powers, amount, axis=0)), op.Cast(inside, to=int(dtype)))


def _moved(op: OpBuilder, x: ir.Value, factor: ir.Value) -> ir.Value:
    moved: ir.Value = op.Mul(x, factor) if op.attr("direction") == "LEFT" else op.Div(x, factor)
    return moved
