"""Resize to sizes known at run time only, axis by axis, at opset 10: positions in float32, as runtimes compute them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.interpolation import Interpolation
from entrepot.ir.opset.adapters.positions import sizes
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.extents import Extents
from entrepot.ir.opset.rules import Replacement

COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")


class Axis(NamedTuple):
    """One axis to resize; sizes and scale are float32 vectors of one element."""

    at: int
    old: ir.Value
    new: ir.Value
    scale: ir.Value


def resize_at_run_time(op: OpBuilder) -> Replacement:
    """Gather the nearest elements of each axis that changes, or mix the two nearest."""
    plan = Interpolation.of(op)
    if plan.mode == "cubic" or plan.exclude_outside or plan.coordinates not in COORDINATES:
        op.refuse("a size that changes is not fixed", hint="possible with fixed sizes, or for nearest and linear")
    x = op.x()
    for axis in _axes(op, op.need_rank(x)):
        position = _position(op, plan, axis)
        x = _nearest(op, x, axis, position, plan.nearest) if plan.mode == "nearest" else _mixed(op, x, axis, position)
    return x


def _axes(op: OpBuilder, rank: int) -> list[Axis]:
    shape, target = op.Shape(op.x()), _target(op)
    found = []
    for index in range(rank):
        if _stays(op, index):
            continue
        old = _float(op, sizes(op, shape, index, index + 1))
        given = op.Slice(target, op.ints(index), op.ints(index + 1))
        if _has_sizes(op):
            new = _float(op, given)
            found.append(Axis(index, old, new, op.Div(new, old)))
        else:
            found.append(Axis(index, old, op.Floor(op.Mul(old, given)), given))
    return found


def _has_sizes(op: OpBuilder) -> bool:
    return op.input(3) is not None and op.shape(op.input(3)) != [0]


def _target(op: OpBuilder) -> ir.Value:
    return op.x(3) if _has_sizes(op) else op.x(2)


def _stays(op: OpBuilder, index: int) -> bool:
    """Whether an axis keeps its size for certain."""
    if not _has_sizes(op):
        scales = op.known(op.x(2))
        return scales is not None and bool(scales[index] == 1)
    extents = Extents(op.around.known, op.around.types)
    wanted = extents.of(op.x(3))
    return wanted is not None and extents.same(wanted[index], op.x(), index)


def _float(op: OpBuilder, value: ir.Value) -> ir.Value:
    result: ir.Value = op.Cast(value, to=int(ir.DataType.FLOAT))
    return result


def _number(op: OpBuilder, value: float) -> ir.Value:
    return op.const(np.array([value], np.float32))


def _position(op: OpBuilder, plan: Interpolation, axis: Axis) -> ir.Value:
    """Where each new element falls on the old axis."""
    count = op.ConstantOfShape(op.Cast(axis.new, to=int(ir.DataType.INT64)), value=ir.tensor(np.ones(1, np.int64)))
    at = _float(op, op.Squeeze(op.NonZero(count), axes=[0]))
    one = _number(op, 1)
    result: ir.Value
    if plan.coordinates == "asymmetric":
        result = op.Div(at, axis.scale)
    elif plan.coordinates == "align_corners":
        result = op.Div(op.Mul(at, op.Sub(axis.old, one)), op.Max(op.Sub(axis.new, one), one))
    else:
        half = _number(op, 0.5)
        result = op.Sub(op.Div(op.Add(at, half), axis.scale), half)
        if plan.coordinates == "pytorch_half_pixel":  # a single element falls on the first
            result = op.Mul(result, _float(op, op.Greater(axis.new, one)))
    return result


def _inside(op: OpBuilder, position: ir.Value, axis: Axis) -> ir.Value:
    result: ir.Value = op.Max(op.Min(position, op.Sub(axis.old, _number(op, 1))), _number(op, 0))
    return result


def _nearest(op: OpBuilder, x: ir.Value, axis: Axis, position: ir.Value, way: str) -> ir.Value:
    half = _number(op, 0.5)
    if way == "round_prefer_floor":
        position = op.Ceil(op.Sub(position, half))
    elif way == "round_prefer_ceil":
        position = op.Floor(op.Add(position, half))
    else:
        position = op.Floor(position) if way == "floor" else op.Ceil(position)
    index = op.Cast(_inside(op, position, axis), to=int(ir.DataType.INT64))
    result: ir.Value = op.Gather(x, index, axis=axis.at)
    return result


def _mixed(op: OpBuilder, x: ir.Value, axis: Axis, position: ir.Value) -> ir.Value:
    dtype = op.need_dtype(op.x())
    if not dtype.is_floating_point():
        op.refuse("a size that changes is not fixed", hint="possible with fixed sizes, or for floats")
    position = _inside(op, position, axis)
    before = op.Floor(position)
    after = _inside(op, op.Add(before, _number(op, 1)), axis)
    trailing = list(range(1, op.need_rank(op.x()) - axis.at))
    share = op.Cast(op.Sub(position, before), to=int(dtype))
    share = op.Unsqueeze(share, axes=trailing) if trailing else share
    low, high = (op.Gather(x, op.Cast(item, to=int(ir.DataType.INT64)), axis=axis.at) for item in (before, after))
    result: ir.Value = op.Add(op.Mul(low, op.Sub(op.const([1], dtype=dtype), share)), op.Mul(high, share))
    return result
