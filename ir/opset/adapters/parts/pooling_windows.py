"""Pooling whose windows an older version cannot cut: lay them side by side and pool without gaps or padding.

Every axis is gathered into as many stretches as there are windows, each as long as a window, so that the same operator
with the window as its stride sees exactly the elements it should. What lies in the padding is another element of the
window for a maximum, and zero for a sum.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement

Positions: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


class Axis(NamedTuple):
    """One spatial axis and how windows move along it."""

    size: int
    window: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def extent(self) -> int:
        """Elements from the first to the last of a window."""
        return self.dilation * (self.window - 1) + 1

    def windows(self, *, ceil: bool) -> int:
        """How many windows there are; none starts in the padding at the end."""
        steps, rest = divmod(self.size + self.before + self.after - self.extent, self.stride)
        if ceil and rest and (steps + 1) * self.stride < self.size + self.before:
            steps += 1
        return steps + 1

    def positions(self, *, ceil: bool) -> Positions:
        """The elements of each window, one window per row; those in the padding lie outside of 0 to ``size``."""
        starts = np.arange(self.windows(ceil=ceil)) * self.stride - self.before
        return np.asarray(starts[:, None] + np.arange(self.window) * self.dilation)


def pooled_axes(op: OpBuilder) -> list[Axis]:
    """The spatial axes of a pooling node, padding by ``auto_pad`` included; their sizes have to be fixed."""
    kernel, shape = op.attr("kernel_shape"), op.shape(op.x())
    if shape is None or None in shape[2:]:
        op.refuse("its windows depend on sizes that are not fixed", hint="possible with fixed height and width")
    count, pad = len(kernel), op.attr("auto_pad", "NOTSET")
    pads = op.attr("pads", [0] * 2 * count) if pad == "NOTSET" else [0] * 2 * count
    strides, dilations = op.attr("strides", [1] * count), op.attr("dilations", [1] * count)
    sizes = [size or 0 for size in shape[2:]]
    rows = zip(sizes, kernel, strides, dilations, pads[:count], pads[count:], strict=True)
    axes = [Axis(*row) for row in rows]
    return [_padded_alike(axis, pad) for axis in axes] if pad.startswith("SAME") else axes


def _padded_alike(axis: Axis, pad: str) -> Axis:
    """The padding that makes one window per stride, with the odd element at the end or at the beginning."""
    steps = -(-axis.size // axis.stride)
    padding = max((steps - 1) * axis.stride + axis.extent - axis.size, 0)
    less, more = padding // 2, padding - padding // 2
    before, after = (less, more) if pad == "SAME_UPPER" else (more, less)
    return axis._replace(before=before, after=after)


def rounds_up(op: OpBuilder) -> bool:
    """Whether ``ceil_mode`` can add windows; SAME padding makes exactly one per stride."""
    pad = op.attr("auto_pad", "NOTSET")
    if pad == "VALID" and op.attr("ceil_mode", 0):
        if any(axis.windows(ceil=True) != axis.windows(ceil=False) for axis in pooled_axes(op)):
            op.refuse(
                "how many windows auto_pad='VALID' makes under ceil_mode is not settled: onnx's formula "
                "ignores it, its shape inference does not",
                hint="give it pads instead of auto_pad",
            )
        return False
    return pad == "NOTSET" and bool(op.attr("ceil_mode", 0))


def windows_side_by_side(op: OpBuilder, node: ir.Node) -> Replacement:
    """Gather the windows of each axis, then pool them without dilation, padding or rounding."""
    if op.used(1):
        op.refuse("its output Indices is not expressible there for these windows")
    axes, ceil = pooled_axes(op), rounds_up(op)
    taken = [(axis, axis.positions(ceil=ceil)) for axis in axes]
    if node.op_type == "MaxPool":
        x = _laid_out(op, op.x(), [_within(op, axis, positions) for axis, positions in taken])
    else:
        outside = [(positions < 0) | (positions >= axis.size) for axis, positions in taken]
        x = _with_zero(op, [bool(mask.any()) for mask in outside])
        filled = [np.where(mask, axis.size, found) for mask, (axis, found) in zip(outside, taken, strict=True)]
        x = _laid_out(op, x, filled)
    kernel = [axis.window for axis in axes]
    written = ("pads", "auto_pad", "dilations", "ceil_mode", "count_include_pad")
    pooled = op.again(x, drop=written, kernel_shape=kernel, strides=kernel)
    return _divided_anew(op, pooled, taken) if node.op_type == "AveragePool" else pooled


def _laid_out(op: OpBuilder, x: ir.Value, windows: list[Positions]) -> ir.Value:
    for axis, positions in enumerate(windows, 2):
        op.need_small(positions.size)
        x = op.Gather(x, op.const(positions.ravel()), axis=axis)
    return x


def _within(op: OpBuilder, axis: Axis, positions: Positions) -> Positions:
    """Each position in the padding replaced by the first of its window that is not."""
    inside = (positions >= 0) & (positions < axis.size)
    if not inside.any(1).all():
        op.refuse("the maximum of a window that is all padding is not expressible there")
    first = np.take_along_axis(positions, inside.argmax(1)[:, None], 1)
    return np.where(inside, positions, first)


def _with_zero(op: OpBuilder, needed: list[bool]) -> ir.Value:
    """The input with one zero at the end of each axis where padding is read."""
    if not any(needed):
        return op.x()
    pads = [0] * (len(needed) + 4) + [int(item) for item in needed]
    padded: ir.Value = op.Pad(op.x(), op.ints(*pads)) if op.version >= 11 else op.Pad(op.x(), pads=pads)
    return padded


def _divided_anew(op: OpBuilder, pooled: ir.Value, taken: list[tuple[Axis, Positions]]) -> ir.Value:
    """The mean of whole windows turned into that of the elements that count."""
    padding_counts = bool(op.attr("count_include_pad", 0))
    share = np.ones(())
    for axis, positions in taken:
        low, high = (-axis.before, axis.size + axis.after) if padding_counts else (0, axis.size)
        counted = ((positions >= low) & (positions < high)).sum(1)
        if not counted.all():
            op.refuse("the mean of a window that is all padding is not expressible there")
        share = share[..., None] * (axis.window / counted)
    op.need_small(share.size)
    return pooled if (share == 1).all() else op.Mul(pooled, op.const(share, like=pooled))
