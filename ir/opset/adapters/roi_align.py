"""RoiAlign, and what it is made of.

| version | change |
|---|---|
| 10 | introduced |
| 16 | ``coordinate_transformation_mode``, default ``half_pixel`` |

Version 10 has no half pixel, and moving the regions by one is no substitute: it also widens regions below
one pixel. So those are sampled by gathering.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.axes import summed, unsqueezed
from entrepot.ir.opset.adapters.parts.computed_resize import SHORT, as_it_was, to_mix
from entrepot.ir.opset.builder import Array, OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, decomposition, unchanged

unchanged("RoiAlign", 16, 22)


@adapter("RoiAlign", 10, 16)
def only_old_mode_written(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Write out the only mode there was, since the default changed."""
    return op.set(coordinate_transformation_mode="output_half_pixel")


@adapter("RoiAlign", 16, 10)
def without_half_pixel(op: OpBuilder, node: ir.Node) -> Replacement:
    """Keep the mode without the half pixel, the only one there was; compute the other by gathering."""
    if _by_half_pixels(op):
        return regions_sampled(op, node)
    return op.drop("coordinate_transformation_mode")


def _by_half_pixels(op: OpBuilder) -> bool:
    return op.since > 10 and op.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"


class _Samples(NamedTuple):
    """Samples on one image axis: (regions, bins, samples of a bin, 2) along the axes of their own, 1 along others."""

    at: ir.Value
    outside: ir.Value
    weight: ir.Value
    size: ir.Value


@decomposition("RoiAlign", 10)
def regions_sampled(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Gather the four neighbours of every sample of every region: (region, y, sample, 2, x, sample, 2, channel)."""
    x, rois = to_mix(op), op.x(1)
    if op.need_dtype(rois) in SHORT:
        rois = op.Cast(rois, to=int(ir.DataType.FLOAT))
    rows, columns = _samples(op, rois, 0), _samples(op, rois, 1)
    batch = op.Reshape(op.Cast(op.x(2), to=int(ir.DataType.INT64)), op.ints(-1, *[1] * 6))
    index = op.Add(op.Mul(op.Add(op.Mul(batch, rows.size), rows.at), columns.size), columns.at)
    channels = op.Gather(op.Shape(x), op.ints(1), axis=0)
    pixels = op.Reshape(op.Transpose(x, perm=[0, 2, 3, 1]), op.Concat(op.ints(-1), channels, axis=0))
    weight, outside = op.Mul(rows.weight, columns.weight), op.Or(rows.outside, columns.outside)
    weight, outside = (unsqueezed(op, value, [7]) for value in (weight, outside))
    weighed = op.Mul(op.Gather(pixels, index, axis=0), weight)
    weighed = op.Where(outside, op.const(0, like=x), weighed)
    if op.attr("mode", "avg") == "max":  # of the weighted values, as in runtimes and onnx's reference
        pooled = op.ReduceMax(weighed, axes=[2, 3, 5, 6], keepdims=0)
    else:
        pooled = summed(op, weighed, [2, 3, 5, 6])
    return as_it_was(op, op.Transpose(pooled, perm=[0, 3, 1, 2]))


def _samples(op: OpBuilder, rois: ir.Value, axis: int) -> _Samples:
    """Where the samples fall on an axis, rows or columns of the image; regions hold x before y."""
    first, spread = 1 - axis, 3 * axis
    scale, offset = op.const(op.attr("spatial_scale", 1.0), like=rois), 0.5 if _by_half_pixels(op) else 0.0
    start, end = (
        op.Sub(op.Mul(op.Gather(rois, op.const(np.int64(side)), axis=1), scale), op.const(offset, like=rois))
        for side in (first, first + 2)
    )
    length, one = op.Sub(end, start), op.const(1, like=rois)
    if not _by_half_pixels(op):
        length = op.Max(length, one)
    share, part = _shares(op, first)
    spots = [share.shape[0], *[1] * 6]
    spots[1 + spread : 3 + spread] = share.shape[1:]
    start, length = (op.Reshape(value, op.ints(-1, *[1] * 6)) for value in (start, length))
    at = op.Add(start, op.Mul(length, op.const(share.reshape(spots), like=rois)))
    part = np.broadcast_to(part[:, None, :], share.shape).reshape(spots)
    return _neighbours(op, axis, at, op.const(part, like=rois))


def _shares(op: OpBuilder, first: int) -> tuple[Array, Array]:
    """(regions or 1, bins, samples): how far along its region each sample lies; (regions or 1, samples): its weight."""
    bins, samples = op.attr("output_height" if first else "output_width", 1), op.attr("sampling_ratio", 0)
    counts = np.array([samples]) if samples else _adapted(op, first, bins)
    most = max(int(counts.max(initial=1)), 1)
    op.need_small(len(counts) * bins * most)
    number = np.minimum(np.arange(most), np.maximum(counts, 1)[:, None] - 1)  # surplus ones repeat the last
    within = (number + 0.5) / np.maximum(counts, 1)[:, None]
    share = (np.arange(bins)[:, None] + within[:, None, :]) / bins
    valid = np.arange(most) < counts[:, None]
    weight = valid / np.maximum(counts, 1)[:, None]
    return share, weight if op.attr("mode", "avg") == "avg" else (counts > 0)[:, None] + 0.0 * weight


def _adapted(op: OpBuilder, first: int, bins: int) -> Array:
    """Samples of each region that take one pixel each, counted in float32 as runtimes do."""
    rois = op.need_known(1, "the regions, which sampling_ratio 0 counts samples by,").astype(np.float32)
    scale, offset = np.float32(op.attr("spatial_scale", 1.0)), np.float32(0.5 if _by_half_pixels(op) else 0)
    length = (rois[:, first + 2] * scale - offset) - (rois[:, first] * scale - offset)
    if not _by_half_pixels(op):
        length = np.maximum(length, np.float32(1))
    return np.maximum(np.ceil(length / np.float32(bins)), 0).astype(np.int64)


def _neighbours(op: OpBuilder, axis: int, at: ir.Value, part: ir.Value) -> _Samples:
    """The elements around each sample, weighted by distance; up to one element outside, those of the border."""
    zero, one, int64 = op.const(0, like=at), op.const(1, like=at), int(ir.DataType.INT64)
    count = op.Gather(op.Shape(op.x(0)), op.ints(2 + axis), axis=0)
    size = op.Cast(count, to=int(op.need_dtype(at)))
    last = op.Sub(size, one)
    outside = op.Or(op.Less(at, op.const(-1, like=at)), op.Greater(at, size))
    inside = op.Min(op.Max(at, zero), last)
    before = op.Floor(inside)
    share = op.Sub(inside, before)
    both = op.Concat(before, op.Min(op.Add(before, one), last), axis=3 * (axis + 1))
    weight = op.Concat(op.Mul(op.Sub(one, share), part), op.Mul(share, part), axis=3 * (axis + 1))
    return _Samples(op.Cast(both, to=int64), outside, weight, count)
