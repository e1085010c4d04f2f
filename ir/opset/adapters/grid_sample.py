"""GridSample: renamed modes, volumes, and what it is made of.

| version | change |
|---|---|
| 16 | introduced, for images |
| 20 | modes renamed; volumes |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, decomposition, unchanged

unchanged("GridSample", 20, 22)


@adapter("GridSample", 16, 20)
def modes_renamed(op: OpBuilder, _node: ir.Node) -> Replacement:
    """The modes were renamed."""
    mode = op.attr("mode", "bilinear")
    return op.set(mode={"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode))


@adapter("GridSample", 20, 16)
def modes_renamed_back(op: OpBuilder, _node: ir.Node) -> Replacement:
    """The modes were renamed; volumes are new."""
    if op.need_rank(op.x()) != 4:
        op.refuse("only 4-D inputs are expressible before version 20")
    mode = op.attr("mode", "linear")
    return op.set(mode={"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode))


class _Axis(NamedTuple):
    """One image axis: its size as a number to compute with and as an index, and where each sample lies on it."""

    size: ir.Value
    last: ir.Value
    number: ir.Value
    at: ir.Value


@decomposition("GridSample", 16)
def sampled_by_gathering(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Gather the neighbours of every sample and weigh them by their distance."""
    mode, padding = op.attr("mode", "bilinear"), op.attr("padding_mode", "zeros")
    if mode == "bicubic" or padding == "reflection":
        op.refuse(f"mode='{mode}' with padding_mode='{padding}' is not expressible before opset 16")
    x, grid = op.x(0), op.x(1)
    rows, columns = _axis(op, 2, 1), _axis(op, 3, 0)
    if mode == "nearest":
        summed = _picked(op, (op.Round(rows.at), op.Round(columns.at)), (rows, columns))
    else:
        summed = _weighed(op, rows, columns)
    lead, spots = op.Slice(op.Shape(x), op.ints(0), op.ints(2)), op.Slice(op.Shape(grid), op.ints(1), op.ints(3))
    return op.Reshape(summed, op.Concat(lead, spots, axis=0))


def _axis(op: OpBuilder, axis: int, column: int) -> _Axis:
    """An axis of the image; the grid's last axis holds its coordinate, -1 to 1, in ``column``."""
    grid = op.Gather(op.x(1), op.const(np.int64(column)), axis=3)
    count = op.Gather(op.Shape(op.x(0)), op.const(np.int64(axis)))
    size = op.Cast(count, to=int(op.need_dtype(op.x(1))))
    one, half = op.const(1, like=grid), op.const(0.5, like=grid)
    last, shifted = op.Sub(size, one), op.Add(grid, one)
    if op.attr("align_corners", 0):
        at = op.Mul(op.Mul(shifted, half), last)
    else:
        at = op.Mul(op.Sub(op.Mul(shifted, size), one), half)
    if op.attr("padding_mode", "zeros") == "border":
        at = _clamped(op, at, last)
    return _Axis(size, last, count, at)


def _clamped(op: OpBuilder, at: ir.Value, last: ir.Value) -> ir.Value:
    clamped: ir.Value = op.Min(op.Max(at, op.const(0, like=at)), last)
    return clamped


def _weighed(op: OpBuilder, rows: _Axis, columns: _Axis) -> ir.Value:
    """The sum over the four neighbours, by bilinear weights."""
    one = op.const(1, like=rows.at)
    ends = []
    for axis in (rows, columns):
        low = op.Floor(axis.at)
        share = op.Sub(axis.at, low)
        ends.append(((low, op.Sub(one, share)), (op.Add(low, one), share)))
    parts = []
    for row, row_weight in ends[0]:
        for column, column_weight in ends[1]:
            weight = op.Reshape(op.Mul(row_weight, column_weight), op.ints(0, 1, -1))
            if op.need_dtype(op.x(0)) != op.need_dtype(op.x(1)):
                weight = op.Cast(weight, to=int(op.need_dtype(op.x(0))))
            parts.append(op.Mul(_picked(op, (row, column), (rows, columns)), weight))
    summed: ir.Value = op.Sum(*parts)
    return summed


def _picked(op: OpBuilder, at: tuple[ir.Value, ir.Value], axes: tuple[_Axis, _Axis]) -> ir.Value:
    """(N, C, samples): the elements at whole positions, 0 outside."""
    x, int64 = op.x(0), int(ir.DataType.INT64)
    row, column = (op.Cast(_clamped(op, spot, axis.last), to=int64) for spot, axis in zip(at, axes, strict=True))
    index = op.Reshape(op.Add(op.Mul(row, axes[1].number), column), op.ints(0, 1, -1))
    lead = op.Concat(op.Slice(op.Shape(x), op.ints(0), op.ints(2)), op.ints(1), axis=0)
    values = op.GatherElements(op.Reshape(x, op.ints(0, 0, -1)), op.Expand(index, lead), axis=2)
    beyond = [_outside(op, spot, axis.last) for spot, axis in zip(at, axes, strict=True)]
    outside = op.Reshape(op.Or(*beyond), op.ints(0, 1, -1))
    picked: ir.Value = op.Where(outside, op.const(0, like=x), values)
    return picked


def _outside(op: OpBuilder, at: ir.Value, last: ir.Value) -> ir.Value:
    outside: ir.Value = op.Or(op.Less(at, op.const(0, like=at)), op.Greater(at, last))
    return outside
