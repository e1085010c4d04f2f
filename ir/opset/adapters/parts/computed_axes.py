"""Axes computed at run time where an operator takes them only as an attribute: each axis in turn, if it is named.

What may or may not happen is a Loop of one turn or none: below opset 11 both branches of an If have one shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.loop import loop
from entrepot.ir.opset.builder import OpBuilder


def axis_by_axis(
    op: OpBuilder,
    x: ir.Value,
    turns: Sequence[ir.Value],
    write: Callable[[OpBuilder, ir.Value, int], ir.Value],
    *,
    first_to_last: bool = False,
    shape: ir.Shape | None = None,
) -> ir.Value:
    """``write(body, x, axis)`` for every axis whose turn is 1.

    The last axis goes first unless said otherwise, so that axes may vanish: those before them keep their numbers.
    ``shape`` is that of ``x`` where it stays the same.
    """
    axes = range(len(turns))
    for axis in axes if first_to_last else reversed(axes):
        x = taken(op, turns[axis], x, lambda body, value, axis=axis: write(body, value, axis), shape=shape)  # type: ignore[misc]
    return x


def taken(
    op: OpBuilder,
    turns: ir.Value,
    x: ir.Value,
    write: Callable[[OpBuilder, ir.Value], ir.Value],
    *,
    shape: ir.Shape | None = None,
) -> ir.Value:
    """``write(body, x)`` where ``turns`` is 1, and ``x`` itself where it is 0.

    Args:
        op: The place.
        turns: An int64 scalar.
        x: The value.
        write: Writes into the builder it is given.
        shape: What is known of the shape, where ``write`` keeps it.
    """
    (result,) = loop(op, turns, [x], lambda body, _turn, value: [write(body, value)], shapes=[shape])
    return result


def named(op: OpBuilder, axes: ir.Value, rank: int, *, empty_means_all: bool = False) -> list[ir.Value]:
    """1 for every axis that a vector of axes names, from either end, else 0."""
    wide = op.Cast(axes, to=int(ir.DataType.INT64))
    shape = op.shape(axes)
    counts = [
        op.ReduceSum(op.Cast(_either(op, wide, axis, axis - rank), to=int(ir.DataType.INT64)), keepdims=0)
        for axis in range(rank)
    ]
    if not empty_means_all or (shape and shape[0]):
        return counts
    nothing = op.Cast(op.Equal(op.Size(wide), op.const(np.int64(0))), to=int(ir.DataType.INT64))
    return [op.Add(count, nothing) for count in counts]


def _either(op: OpBuilder, axes: ir.Value, front: int, back: int) -> ir.Value:
    result: ir.Value = op.Or(op.Equal(axes, op.const(np.int64(front))), op.Equal(axes, op.const(np.int64(back))))
    return result


def total(op: OpBuilder, x: ir.Value, axes: list[int], *, keepdims: int) -> ir.Value:
    """ReduceSum, whose axes moved to an input before those of the other reductions."""
    if op.version < 13:
        summed: ir.Value = op.ReduceSum(x, axes=axes, keepdims=keepdims)
    else:
        summed = op.ReduceSum(x, op.ints(*axes), keepdims=keepdims)
    return summed
