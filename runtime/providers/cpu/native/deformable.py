from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.convolution import conv_window
from entrepot.runtime.kernels.precision import accumulation_dtype
from entrepot.runtime.kernels.window import Window
from entrepot.runtime.providers.cpu.native.convolution import biased, weighted
from entrepot.runtime.providers.cpu.table import native

Array: TypeAlias = np.ndarray[Any, Any]


@native("DeformConv", 22)
def deform_conv(
    X: Array,
    W: Array,
    offset: Array,
    B: Array | None = None,
    mask: Array | None = None,
    *,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    offset_group: int = 1,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """A convolution whose windows' points are each moved by an offset, read by linear interpolation."""
    win = conv_window(X.shape, W.shape, kernel_shape, group, "NOTSET", dilations, pads, strides)
    batch, channels, rank = X.shape[0], X.shape[1], len(win.kernel)
    if offset.shape != (batch, offset_group * win.points * rank, *win.target) or channels % offset_group:
        raise InputError(f"DeformConv: offset of shape {offset.shape} does not fit outputs of sizes {win.target}")
    dtype = accumulation_dtype(X.dtype)
    moves = offset.astype(dtype).reshape(batch, offset_group, win.points, rank, *win.target)
    columns = _sampled(X.astype(dtype, copy=False), moves, win)
    if mask is not None:
        factors = mask.astype(dtype).reshape(batch, offset_group, 1, win.points, *win.target)
        columns *= factors
    y = weighted(W.astype(dtype, copy=False), columns, win, group)
    return biased(y, B).astype(X.dtype, copy=False)


def _sampled(x: Array, moves: Array, win: Window) -> Array:
    """(batch, offset groups, channels of a group, points, *target): the input where the moved windows look."""
    batch, groups, rank = x.shape[0], moves.shape[1], len(win.kernel)
    at = [moves[:, :, :, axis] + _grid(win, axis).astype(x.dtype) for axis in range(rank)]
    flat = x.reshape(batch, groups, x.shape[1] // groups, 1, math.prod(win.source))
    base = [np.floor(position) for position in at]
    total: Any = 0
    for corner in itertools.product((0, 1), repeat=rank):
        index: Any = np.zeros((), np.int64)
        weight: Any = x.dtype.type(1)
        for axis, step in enumerate(corner):
            place = base[axis] + step
            inside = (place >= 0) & (place <= win.source[axis] - 1)
            distance = at[axis] - base[axis]
            weight = weight * np.where(inside, distance if step else 1 - distance, 0)
            index = index * win.source[axis] + np.where(inside, place, 0).astype(np.int64)
        picked = np.take_along_axis(
            flat, index.reshape(batch, groups, 1, 1, math.prod(moves.shape[2:3] + win.target)), axis=4
        )
        total = total + picked.reshape(*flat.shape[:3], *moves.shape[2:3], *win.target) * weight[:, :, None]
    return np.asarray(total)


def _grid(win: Window, axis: int) -> Array:
    """(points, *target): where the undisturbed windows look along one axis."""
    tap = np.unravel_index(np.arange(win.points), win.kernel)[axis] * win.dilations[axis]
    start = np.arange(win.target[axis]) * win.strides[axis] - win.begin[axis]
    rank = len(win.kernel)
    return tap.reshape(-1, *[1] * rank) + start.reshape([-1 if i == axis else 1 for i in range(rank)])
