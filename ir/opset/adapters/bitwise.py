"""Bits of integers: combined since opset 18, before that by arithmetic on hexadecimal digits."""

from __future__ import annotations

import functools

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, decomposition

INT64 = int(ir.DataType.INT64)
TABLES = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}


@decomposition("BitwiseAnd", 18)
@decomposition("BitwiseOr", 18)
@decomposition("BitwiseXor", 18)
def combined_by_digits(op: OpBuilder, node: ir.Node) -> Replacement:
    """Look up each pair of digits, laid out along an axis of their own; a signed type has a signed highest digit."""
    dtype = op.need_dtype(op.x(0))
    signed, wide = dtype.is_signed(), ir.DataType.UINT64 if dtype == ir.DataType.UINT64 else ir.DataType.INT64
    count = dtype.bitwidth // 4
    table = TABLES[node.op_type].outer(np.arange(16), np.arange(16)).ravel()
    table = np.concatenate([table, np.where(table > 7, table - 16, table)])
    a, b = (_digits(op, op.Cast(op.x(index), to=int(wide)), count, wide, signed=signed) for index in (0, 1))
    highest = np.zeros(count, np.int64)
    highest[-1] = 256 * signed
    pair = op.Add(op.Add(op.Mul(a, op.ints(16)), b), op.const(highest))
    digits = op.Gather(op.const(table), pair, axis=0)
    return op.Cast(_number(op, digits, count, wide), to=int(dtype))


def _digits(op: OpBuilder, x: ir.Value, count: int, wide: ir.DataType, *, signed: bool) -> ir.Value:
    """Digits to the base 16, lowest first; those of a negative x are 15 minus those of -1 - x."""
    negative = op.Cast(op.Less(x, op.const(0, dtype=wide)), to=INT64) if signed else None
    if negative is not None:
        x = op.Mul(op.Add(x, negative), op.Sub(op.const(np.int64(1)), op.Add(negative, negative)))
    base = op.const(16, dtype=wide)
    places = op.const(np.array([16**place for place in range(count)], np.uint64), dtype=wide)
    shifted = op.Div(op.Unsqueeze(x, op.ints(-1)), places)
    digits: ir.Value = op.Cast(op.Sub(shifted, op.Mul(op.Div(shifted, base), base)), to=INT64)
    if negative is None:
        return digits
    lacking = op.Sub(op.ints(15), op.Add(digits, digits))
    turned: ir.Value = op.Add(digits, op.Mul(op.Unsqueeze(negative, op.ints(-1)), lacking))
    return turned


def _number(op: OpBuilder, digits: ir.Value, count: int, wide: ir.DataType) -> ir.Value:
    """The digits put together, eight at a time, so that a product in double is exact."""
    halves = range(0, count, 8)
    weights = np.zeros((count, len(halves)))
    for place in range(count):
        weights[place, place // 8] = 16 ** (place % 8)
    sums = op.MatMul(op.Cast(digits, to=int(ir.DataType.DOUBLE)), op.const(weights))
    parts = [op.Cast(op.Gather(sums, op.const(np.int64(i)), axis=-1), to=int(wide)) for i in range(len(halves))]
    scaled = [op.Mul(part, op.const(16**first, dtype=wide)) for first, part in zip(halves, parts, strict=True)]
    return functools.reduce(op.Add, scaled)


@decomposition("BitwiseNot", 18)
def bitwise_not(op: OpBuilder, _node: ir.Node) -> Replacement:
    """-1 - x for signed types, the largest value - x for unsigned ones: both are -1 in two's complement."""
    dtype = op.need_dtype(op.x())
    return op.Sub(op.const(np.array(~np.zeros((), dtype.numpy()))), op.x())
