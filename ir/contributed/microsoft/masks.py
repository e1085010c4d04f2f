"""Masks in the forms that onnxruntime's attention takes, as numbers that are added to scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder

Value = ir.Value | None


def sum_of(op: OpBuilder, first: Value, second: Value) -> Any:
    """Of two terms that may be absent."""
    present = [each for each in (first, second) if each is not None]
    return op.Add(*present) if len(present) == 2 else next(iter(present), None)


def bias_of_mask(op: OpBuilder, mask: Value, length: Any, masked: float, like: Value) -> Any:
    """Zero where a position counts, ``masked`` where it does not, with the axes (batch, heads, queries, positions).

    A vector has the end of each row, and then its beginning, if it is twice as long; else the axes are (batch,
    positions) or (batch, queries, positions), and numbers above 0 count.

    Args:
        op: The place.
        mask: The mask.
        length: How many positions there are.
        masked: What is added where a position does not count.
        like: Has the element type of the scores.
    """
    if mask is None:
        return None
    rank = op.need_rank(mask)
    if rank == 1:
        counts = _within(op, mask, length)
    elif rank in (2, 3):
        axes = op.ints(1, 2) if rank == 2 else op.ints(1)
        counts = op.Unsqueeze(op.Greater(mask, op.const(0, like=mask)), axes)
    else:
        op.refuse(f"nobody has said what a mask of {rank} axes means")
    return op.Where(counts, op.const(0.0, like=like), op.const(masked, like=like))


def _within(op: OpBuilder, bounds: Any, length: Any) -> Any:
    """Positions below the ends, and not before the beginnings where there are some."""
    rows = op.Shape(op.node.inputs[0], start=0, end=1)
    padded = op.Concat(bounds, op.Expand(op.const(np.array([0], np.int32)), rows), axis=0)
    ends = op.Slice(padded, op.ints(0), rows, op.ints(0))
    beginnings = op.Slice(padded, rows, op.Add(rows, rows), op.ints(0))
    positions = op.Cast(numbers_to(op, length), to=int(ir.DataType.INT32))
    after, before = (op.Unsqueeze(each, op.ints(1)) for each in (beginnings, ends))
    inside = op.And(op.GreaterOrEqual(positions, after), op.Less(positions, before))
    return op.Unsqueeze(inside, op.ints(1, 2))


def numbers_to(op: OpBuilder, length: Any) -> Any:
    """0, 1, ... below a length of one element."""
    return op.Range(op.const(0, dtype=ir.DataType.INT64), op.Squeeze(length), op.const(1, dtype=ir.DataType.INT64))
