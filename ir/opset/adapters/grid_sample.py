"""GridSample: renamed modes, volumes, and what it is made of.

| version | change |
|---|---|
| 16 | introduced, for images |
| 20 | modes renamed; volumes |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.neighbours import LINEAR, NEAREST, Kernel, cubic, polynomial
from entrepot.ir.opset.adapters.parts.positions import product, sizes
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, decomposition, unchanged

unchanged("GridSample", 20, 22)

CUBIC = cubic(-0.75)
KERNELS = {"nearest": NEAREST, "linear": LINEAR, "bilinear": LINEAR, "cubic": CUBIC, "bicubic": CUBIC}


@adapter("GridSample", 16, 20)
def modes_renamed(op: OpBuilder, _node: ir.Node) -> Replacement:
    """The modes were renamed."""
    mode = op.attr("mode", "bilinear")
    return op.set(mode={"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode))


@adapter("GridSample", 20, 16)
def modes_renamed_back(op: OpBuilder, node: ir.Node) -> Replacement:
    """The modes were renamed; volumes are new."""
    if op.need_rank(op.x()) != 4:
        return sampled_by_gathering(op, node)
    mode = op.attr("mode", "linear")
    return op.set(mode={"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode))


class _Neighbours(NamedTuple):
    """One axis as samples see it. Shapes are those of the grid, then the number of neighbours on each axis."""

    at: ir.Value
    outside: ir.Value | None
    weight: ir.Value | None


@decomposition("GridSample", 16)
def sampled_by_gathering(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Gather the neighbours of every sample and weigh them by their distance."""
    x, kernel = op.x(0), KERNELS[op.attr("mode", "linear")]
    rank, dtype = op.need_rank(x), op.need_dtype(x)
    if dtype == ir.DataType.STRING and op.attr("padding_mode", "zeros") == "zeros":
        op.refuse("the padding of strings is not specified", hint="possible with padding_mode border or reflection")
    if kernel.polynomial and not dtype.is_floating_point():
        op.refuse("the rounding of interpolated integers is not expressible there", hint="Cast to float around it")
    grid = _grid(op)
    axes = [_neighbours(op, kernel, grid, axis, rank - 2) for axis in range(rank - 2)]
    values = _picked(op, axes)
    if not kernel.polynomial:
        return op.Reshape(values, _result_shape(op))
    weight = _all(op.Mul, [axis.weight for axis in axes])
    if dtype != op.need_dtype(grid):
        weight = op.Cast(weight, to=int(dtype))
    weighed = op.Mul(values, _per_sample(op, weight))
    count = op.ints(len(kernel.offsets) ** len(axes))
    return op.ReduceSum(op.Reshape(weighed, op.Concat(_result_shape(op), count, axis=0)), op.ints(rank), keepdims=0)


def _all(combine: Callable[..., ir.Value], values: Sequence[ir.Value | None]) -> ir.Value:
    result = values[0]
    for value in values[1:]:
        result = combine(result, value)
    assert result is not None
    return result


def _grid(op: OpBuilder) -> ir.Value:
    """The grid, of 32 bits at least: sizes and positions between elements need more than half precision."""
    short = op.need_dtype(op.x(1)) in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
    grid: ir.Value = op.Cast(op.x(1), to=int(ir.DataType.FLOAT)) if short else op.x(1)
    return grid


def _neighbours(op: OpBuilder, kernel: Kernel, grid: ir.Value, axis: int, count: int) -> _Neighbours:
    """One of ``count`` axes; the grid's last axis holds its coordinate, -1 to 1, the last axis first."""
    column = op.Gather(grid, op.const(np.int64(count - 1 - axis)), axis=count + 1)
    column = op.Unsqueeze(column, op.ints(*range(count + 1, 2 * count + 1)))
    size = op.Gather(op.Shape(op.x(0)), op.const(np.int64(axis + 2)))
    size = op.Cast(size, to=int(op.need_dtype(column)))
    last = op.Sub(size, op.const(1, like=column))
    at = _position(op, column, size, last)
    spread = [-1 if other == axis else 1 for other in range(count)]
    start = op.Round(at) if kernel is NEAREST else op.Floor(at)
    whole = op.Add(start, op.const(np.reshape(kernel.offsets, spread), like=column))
    outside = weight = None
    if op.attr("padding_mode", "zeros") == "zeros":
        outside = op.Or(op.Less(whole, op.const(0, like=column)), op.Greater(whole, last))
    if kernel.polynomial:
        rows = [op.const(np.reshape(row, spread), like=column) for row in kernel.polynomial]
        weight = polynomial(op, op.Abs(op.Sub(at, whole)), rows)
    return _Neighbours(_inside(op, whole, size, last), outside, weight)


def _position(op: OpBuilder, column: ir.Value, size: ir.Value, last: ir.Value) -> ir.Value:
    """Where samples fall on an axis, counted in elements."""
    one, half = op.const(1, like=column), op.const(0.5, like=column)
    shifted = op.Add(column, one)
    if op.attr("align_corners", 0):
        at: ir.Value = op.Mul(op.Mul(shifted, half), last)
    else:
        at = op.Mul(op.Sub(op.Mul(shifted, size), one), half)
    return at


def _inside(op: OpBuilder, whole: ir.Value, size: ir.Value, last: ir.Value) -> ir.Value:
    """Whole positions brought into the image: to its border, or reflected as often as it takes."""
    if op.attr("padding_mode", "zeros") == "reflection":
        whole = _reflected(op, whole, size, last)
    inside: ir.Value = op.Min(op.Max(whole, op.const(0, like=whole)), last)
    return inside


def _reflected(op: OpBuilder, whole: ir.Value, size: ir.Value, last: ir.Value) -> ir.Value:
    """Back and forth at the middle of the border elements, or at their outer edge."""
    one = op.const(1, like=whole)
    if op.attr("align_corners", 0):
        there, back = op.Max(op.Add(last, last), one), op.Add(last, last)
    else:
        there = op.Add(size, size)
        back = op.Sub(there, one)
    within = op.Sub(whole, op.Mul(op.Floor(op.Div(whole, there)), there))
    reflected: ir.Value = op.Min(within, op.Sub(back, within))
    return reflected


def _picked(op: OpBuilder, axes: list[_Neighbours]) -> ir.Value:
    """(N, C, all neighbours of all samples): the elements there, 0 outside."""
    x, rank, int64 = op.x(0), len(axes) + 2, int(ir.DataType.INT64)
    shape = op.Shape(x)
    index = op.Cast(axes[0].at, to=int64)
    for axis, found in enumerate(axes[1:], 3):
        index = op.Add(op.Mul(index, sizes(op, shape, axis, axis + 1)), op.Cast(found.at, to=int64))
    flat = op.Reshape(x, op.Concat(sizes(op, shape, 0, 2), product(op, shape, 2, rank), axis=0))
    lead = op.Concat(sizes(op, shape, 0, 2), op.ints(1), axis=0)
    values: ir.Value = op.GatherElements(flat, op.Expand(_per_sample(op, index), lead), axis=2)
    if op.attr("padding_mode", "zeros") != "zeros":
        return values
    outside = _per_sample(op, _all(op.Or, [axis.outside for axis in axes]))
    inside: ir.Value = op.Where(outside, op.const(0, like=x), values)
    return inside


def _per_sample(op: OpBuilder, value: ir.Value) -> ir.Value:
    """Flattened to (N, 1, all neighbours of all samples)."""
    shape, rank = op.Shape(value), 2 * op.need_rank(op.x(0)) - 3
    result: ir.Value = op.Reshape(
        value, op.Concat(sizes(op, shape, 0, 1), op.ints(1), product(op, shape, 1, rank), axis=0)
    )
    return result


def _result_shape(op: OpBuilder) -> ir.Value:
    grid, rank = op.Shape(op.x(1)), op.need_rank(op.x(0))
    shape: ir.Value = op.Concat(sizes(op, op.Shape(op.x(0)), 0, 2), sizes(op, grid, 1, rank - 1), axis=0)
    return shape
