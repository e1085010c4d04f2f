"""Resize to sizes known at run time only, axis by axis: positions in float32, as runtimes compute them.

Where an element falls between others, these are gathered beside each other and mixed by weight. So a NaN or
infinity reaches no further than runtimes let it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.axes import summed, unsqueezed
from entrepot.ir.opset.adapters.parts.interpolation import Interpolation, has_sizes, known_sizes, resized_axes
from entrepot.ir.opset.adapters.parts.neighbours import LINEAR, cubic, polynomial
from entrepot.ir.opset.adapters.parts.positions import counted, sizes
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.extents import Extents
from entrepot.ir.opset.rules import Replacement

CROP = "tf_crop_and_resize"
FLOAT, INT64 = int(ir.DataType.FLOAT), int(ir.DataType.INT64)
SHORT = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


class Axis(NamedTuple):
    """One axis to resize; sizes, scale and region are float32 vectors of one element."""

    at: int
    old: ir.Value
    new: ir.Value
    scale: ir.Value
    region: tuple[ir.Value, ir.Value] | None


def resize_at_run_time(op: OpBuilder) -> Replacement:
    """Gather the nearest elements of each axis that changes, or mix the neighbours."""
    plan = Interpolation.of(op)
    x = op.x() if plan.mode == "nearest" else to_mix(op)
    for axis in _axes(op, plan):
        position = _position(op, plan, axis)
        if plan.mode == "nearest":
            x = _nearest(op, x, axis, position, plan.nearest)
        else:
            x = _mixed(op, plan, x, axis, position)
        if plan.coordinates == CROP:
            x = _extrapolated(op, x, axis, position)
    return x if plan.mode == "nearest" else as_it_was(op, x)


def to_mix(op: OpBuilder) -> ir.Value:
    """The input in a type whose sums are not rounded to a few bits."""
    dtype = op.need_dtype(op.x())
    if not dtype.is_floating_point():
        op.refuse("the rounding of interpolated integers is not expressible there", hint="Cast to float around it")
    return _float(op, op.x()) if dtype in SHORT else op.x()


def as_it_was(op: OpBuilder, x: ir.Value) -> ir.Value:
    """The mixture, in the type of the input."""
    dtype = op.need_dtype(op.x())
    result: ir.Value = op.Cast(x, to=int(dtype)) if dtype in SHORT else x
    return result


def mixed(op: OpBuilder, x: ir.Value, axis: int, index: ir.Value, weight: ir.Value) -> ir.Value:
    """Sums along an axis: of each new element the neighbours at ``index``, a row of a matrix, times their weights."""
    trailing = list(range(2, op.need_rank(op.x()) - axis + 1))
    weighed = op.Mul(op.Gather(x, index, axis=axis), unsqueezed(op, weight, trailing))
    return summed(op, weighed, [axis + 1])


# what to resize


def _axes(op: OpBuilder, plan: Interpolation) -> list[Axis]:
    shape, axes = op.Shape(op.x()), resized_axes(op)
    old = [_float(op, sizes(op, shape, axis, axis + 1)) for axis in axes]
    given = [_float(op, sizes(op, _target(op), index, index + 1)) for index in range(len(axes))]
    regions = _regions(op, len(axes)) if plan.coordinates == CROP else [None] * len(axes)
    policy = op.attr("keep_aspect_ratio_policy", "stretch")
    scales = [op.Div(new, size) for new, size in zip(given, old, strict=True)] if has_sizes(op) else given
    if not has_sizes(op):
        if plan.coordinates == CROP and not _whole(op):
            op.refuse("runtimes disagree about the size of a scaled region", hint="possible with sizes")
        given = [op.Floor(op.Mul(size, scale)) for size, scale in zip(old, scales, strict=True)]
    elif policy != "stretch":
        common = op.Min(*scales) if policy == "not_larger" else op.Max(*scales)
        scales = [common] * len(axes)
        given = [op.Floor(op.Add(op.Mul(size, common), _number(op, 0.5))) for size in old]
    rows = [Axis(*row) for row in zip(axes, old, given, scales, regions, strict=True)]
    return [row for index, row in enumerate(rows) if not _stays(op, plan, index, row.at)]


def _target(op: OpBuilder) -> ir.Value:
    return op.x(3) if has_sizes(op) else op.x(2)


def _regions(op: OpBuilder, count: int) -> list[tuple[ir.Value, ir.Value] | None]:
    if _whole(op):
        return [(_number(op, 0), _number(op, 1))] * count
    roi = _float(op, op.x(1))
    return [(sizes(op, roi, i, i + 1), sizes(op, roi, count + i, count + i + 1)) for i in range(count)]


def _whole(op: OpBuilder) -> bool:
    """Whether no region is given."""
    return op.input(1) is None or op.shape(op.input(1)) == [0]


def _stays(op: OpBuilder, plan: Interpolation, index: int, axis: int) -> bool:
    """Whether an axis certainly keeps its size, and with it its contents."""
    if plan.coordinates == CROP and not _whole(op):
        roi = op.known(op.x(1))
        if roi is None or roi[index] != 0 or roi[index + len(roi) // 2] != 1:
            return False
    if not has_sizes(op):
        scales = op.known(op.x(2))
        return scales is not None and bool(scales[index] == 1)
    if op.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        return False
    extents = Extents(op.around.known, op.around.types)
    wanted, stated = extents.of(op.x(3)), known_sizes(op)
    if wanted is not None and extents.same(wanted[index], op.x(), axis):
        return True
    return stated is not None and stated[index] == (op.shape(op.x()) or [])[axis]


# where each new element falls


def _float(op: OpBuilder, value: ir.Value) -> ir.Value:
    result: ir.Value = op.Cast(value, to=FLOAT)
    return result


def _number(op: OpBuilder, value: float) -> ir.Value:
    return op.const(np.array([value], np.float32))


def _numbers(op: OpBuilder, axis: Axis) -> ir.Value:
    """0, 1, 2, … up to the new size, which the file may state."""
    stated = op.shape(op.node.outputs[0])
    size = None if stated is None else stated[axis.at]
    if size is not None:
        return op.const(np.arange(size, dtype=np.float32))
    return _float(op, counted(op, op.Cast(axis.new, to=INT64)))


def _position(op: OpBuilder, plan: Interpolation, axis: Axis) -> ir.Value:
    """Where each new element falls on the old axis."""
    at, one, half = _numbers(op, axis), _number(op, 1), _number(op, 0.5)
    result: ir.Value
    if plan.coordinates == CROP:
        result = _in_region(op, axis, at)
    elif plan.coordinates == "asymmetric":
        result = op.Div(at, axis.scale)
    elif plan.coordinates == "align_corners":
        result = op.Div(op.Mul(at, op.Sub(axis.old, one)), op.Max(op.Sub(axis.new, one), one))
    elif plan.coordinates == "tf_half_pixel_for_nn":  # an axis that keeps its size is left alone, not shifted by a half
        changes = _float(op, op.Greater(op.Abs(op.Sub(axis.scale, one)), _number(op, 0)))
        result = op.Div(op.Add(at, op.Mul(changes, half)), axis.scale)
    else:
        result = op.Div(op.Add(at, half), axis.scale)
        if plan.coordinates == "half_pixel_symmetric":
            cut = op.Sub(one, op.Div(axis.new, op.Mul(axis.scale, axis.old)))
            result = op.Add(op.Mul(op.Mul(axis.old, half), cut), result)
        result = op.Sub(result, half)
        if plan.coordinates == "pytorch_half_pixel":  # a single element falls on the first
            result = op.Mul(result, _float(op, op.Greater(axis.new, one)))
    return result


def _in_region(op: OpBuilder, axis: Axis, at: ir.Value) -> ir.Value:
    """Spread over the region; a single element falls on its middle."""
    assert axis.region is not None
    (start, end), one = axis.region, _number(op, 1)
    last, steps = op.Sub(axis.old, one), op.Max(op.Sub(axis.new, one), one)
    several = _float(op, op.Greater(axis.new, one))
    begin = op.Mul(start, last)
    middle = op.Mul(op.Mul(_number(op, 0.5), op.Add(start, end)), last)
    along = op.Add(begin, op.Div(op.Mul(at, op.Mul(op.Sub(end, start), last)), steps))
    position: ir.Value = op.Add(op.Mul(along, several), op.Mul(middle, op.Sub(one, several)))
    return position


def _outside(op: OpBuilder, position: ir.Value, axis: Axis) -> ir.Value:
    last = op.Sub(axis.old, _number(op, 1))
    result: ir.Value = op.Or(op.Less(position, _number(op, 0)), op.Greater(position, last))
    return result


def _inside(op: OpBuilder, position: ir.Value, axis: Axis) -> ir.Value:
    """As whole numbers, clamped to the border."""
    held = op.Max(op.Min(position, op.Sub(axis.old, _number(op, 1))), _number(op, 0))
    result: ir.Value = op.Cast(held, to=INT64)
    return result


# what it is made of


def _nearest(op: OpBuilder, x: ir.Value, axis: Axis, position: ir.Value, way: str) -> ir.Value:
    half = _number(op, 0.5)
    if way == "round_prefer_floor":
        position = op.Ceil(op.Sub(position, half))
    elif way == "round_prefer_ceil":
        position = op.Floor(op.Add(position, half))
    else:
        position = op.Floor(position) if way == "floor" else op.Ceil(position)
    result: ir.Value = op.Gather(x, _inside(op, position, axis), axis=axis.at)
    return result


def _mixed(op: OpBuilder, plan: Interpolation, x: ir.Value, axis: Axis, position: ir.Value) -> ir.Value:
    kernel = LINEAR if plan.mode == "linear" else cubic(plan.cubic)
    column = unsqueezed(op, position, [1])
    if plan.antialias:
        stretch = op.Min(axis.scale, _number(op, 1))
        near = op.Add(op.Floor(column), _reach(op, plan, axis, stretch))
        weight = _weight(op, plan, op.Mul(op.Abs(op.Sub(column, near)), stretch))
    else:
        near = op.Add(op.Floor(column), op.const(np.array([kernel.offsets], np.float32)))
        rows = [op.const(np.array([row], np.float32)) for row in kernel.polynomial]
        weight = polynomial(op, op.Abs(op.Sub(column, near)), rows)
    if plan.exclude_outside:
        weight = op.Mul(weight, _float(op, op.Not(_outside(op, near, axis))))
    if plan.exclude_outside or plan.antialias:
        weight = op.Div(weight, summed(op, weight, [1], keepdims=1))
        weightless = op.Not(op.Or(op.Less(weight, _number(op, 0)), op.Greater(weight, _number(op, 0))))
        near = op.Where(weightless, op.Floor(op.Add(column, _number(op, 0.5))), near)  # 0 times NaN is not 0
    weight = op.Cast(weight, to=int(op.need_dtype(x)))
    return mixed(op, x, axis.at, _inside(op, near, axis), weight)


def _reach(op: OpBuilder, plan: Interpolation, axis: Axis, stretch: ir.Value) -> ir.Value:
    """How far the neighbours lie from an element whose kernel is stretched: a row of whole numbers about 0."""
    support, old, new = 2 if plan.mode == "cubic" else 1, op.shape(op.x()), op.shape(op.node.outputs[0])
    before, after = (None if shape is None else shape[axis.at] for shape in (old, new))
    if before and after:
        reach = int(np.ceil(support * max(before / after, 1))) + 1
        return op.const(np.arange(-reach, reach + 1, dtype=np.float32)[None])
    length = op.Add(op.Ceil(op.Div(_number(op, support), stretch)), _number(op, 1))
    count = op.Add(op.Mul(length, _number(op, 2)), _number(op, 1))
    numbers = _float(op, counted(op, op.Cast(count, to=INT64)))
    return unsqueezed(op, op.Sub(numbers, length), [0])


def _weight(op: OpBuilder, plan: Interpolation, distance: ir.Value) -> ir.Value:
    """The kernel piece by piece, for any number of neighbours."""
    one, two = _number(op, 1), _number(op, 2)
    if plan.mode == "linear":
        line: ir.Value = op.Max(op.Sub(one, distance), _number(op, 0))
        return line
    far, near = (
        polynomial(op, distance, [_number(op, row[piece]) for row in cubic(plan.cubic).polynomial]) for piece in (0, 1)
    )
    inner = _float(op, op.Less(distance, one))
    outer = op.Sub(_float(op, op.Less(distance, two)), inner)
    weight: ir.Value = op.Add(op.Mul(near, inner), op.Mul(far, outer))
    return weight


def _extrapolated(op: OpBuilder, x: ir.Value, axis: Axis, position: ir.Value) -> ir.Value:
    """The value given for elements that fall outside of the image."""
    outside = unsqueezed(op, _outside(op, position, axis), list(range(1, op.need_rank(op.x()) - axis.at)))
    value = op.const(op.attr("extrapolation_value", 0.0), like=x)
    result: ir.Value = op.Where(outside, value, x)
    return result
