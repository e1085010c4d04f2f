"""Pools as elementwise passes over slices, one per point of the window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any

import ml_dtypes
import numpy as np

from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.precision import accumulation_dtype
from entrepot.runtime.kernels.table import shared
from entrepot.runtime.kernels.unrolled import padded, taps
from entrepot.runtime.kernels.window import Window, window


def lowest(dtype: np.dtype[Any]) -> Any:
    """A value that never wins a maximum."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    return dtype.type(-math.inf)


@shared("MaxPool", 22)
def max_pool(
    xp: Backend,
    X: Array,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    storage_order: int = 0,
    strides: Sequence[int] | None = None,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    """The largest value of each window; also where in the whole input it is."""
    shape, dtype = xp.shape(X), xp.dtype(X)
    win = window(shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    wide = accumulation_dtype(dtype) if dtype == ml_dtypes.bfloat16 else dtype
    points = taps(padded(xp, xp.astype(X, wide), win, lowest(wide)), win)
    y = xp.astype(reduce(xp.maximum, points), dtype)
    if n_outputs < 2:
        return (y,)
    chosen = xp.argmax(xp.stack(points, 2), 2)
    offsets, starts = _flat_places(win, shape[0] * shape[1], storage_order)
    starts = starts.reshape(shape[0], shape[1], *win.target)
    return y, xp.take(xp.asarray(offsets), chosen, 0) + xp.asarray(starts)


def _flat_places(win: Window, planes: int, storage_order: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Flat indices into the unpadded input: of each point of a window, counted from its start; of each start."""
    order = range(len(win.kernel))[:: -1 if storage_order == 0 else 1]
    weights, step = [0] * len(win.kernel), 1
    for axis in order:
        weights[axis], step = step, step * win.source[axis]
    offsets = np.array([np.dot(np.multiply(tap, win.dilations), weights) for tap in np.ndindex(*win.kernel)], np.int64)
    starts: Any = np.arange(planes, dtype=np.int64) * math.prod(win.source)
    for axis, weight in enumerate(weights):
        along = (np.arange(win.target[axis]) * win.strides[axis] - win.begin[axis]) * weight
        starts = np.add.outer(starts, along)
    return offsets, starts


@shared("AveragePool", 22)
def average_pool(
    xp: Backend,
    X: Array,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """The mean of each window, over its points in the input, or in the padded input."""
    dtype = xp.dtype(X)
    wide = accumulation_dtype(dtype)
    win = window(xp.shape(X)[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    total = _summed(xp, xp.astype(X, wide), win)
    return xp.astype(total / xp.asarray(window_counts(win, count_include_pad).astype(wide)), dtype)


def _summed(xp: Backend, x: Array, win: Window) -> Array:
    return reduce(lambda total, point: total + point, taps(padded(xp, x, win, 0), win))


@lru_cache(maxsize=32)
def window_counts(win: Window, count_include_pad: int) -> np.ndarray[Any, Any]:
    """How many points of each window count; those that only rounding up reached never do."""
    counts: Any = np.ones((), np.int64)
    for axis in range(len(win.kernel)):
        start = np.arange(win.target[axis]) * win.strides[axis] - win.begin[axis]
        points = start[:, None] + np.arange(win.kernel[axis]) * win.dilations[axis]
        low = -win.begin[axis] if count_include_pad else 0
        high = win.source[axis] + (win.end[axis] if count_include_pad else 0)
        counts = np.multiply.outer(counts, ((points >= low) & (points < high)).sum(axis=1))
    return counts


@shared("LpPool", 22)
def lp_pool(
    xp: Backend,
    X: Array,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    p: int = 2,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """The p-norm of each window."""
    win = window(xp.shape(X)[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    return _root(xp, _summed(xp, _powers(xp, X, p), win), p, xp.dtype(X))


def _powers(xp: Backend, x: Array, p: int) -> Array:
    size = xp.abs(xp.astype(x, accumulation_dtype(xp.dtype(x))))
    return xp.power(size, xp.scalar(p, like=size))


def _root(xp: Backend, total: Array, p: int, dtype: np.dtype[Any]) -> Array:
    return xp.astype(xp.power(total, xp.scalar(1 / p, like=total)), dtype)


def _spatial(xp: Backend, x: Array) -> tuple[int, ...]:
    return tuple(range(2, len(xp.shape(x))))


@shared("GlobalAveragePool", 22)
def global_average_pool(xp: Backend, X: Array) -> Array:
    """The mean over all spatial axes."""
    dtype = xp.dtype(X)
    total = xp.sum(xp.astype(X, accumulation_dtype(dtype)), _spatial(xp, X), keepdims=True)
    return xp.astype(total / xp.scalar(math.prod(xp.shape(X)[2:]), like=total), dtype)


@shared("GlobalMaxPool", 22)
def global_max_pool(xp: Backend, X: Array) -> Array:
    """The maximum over all spatial axes."""
    return xp.max(X, _spatial(xp, X), keepdims=True)


@shared("GlobalLpPool", 22)
def global_lp_pool(xp: Backend, X: Array, *, p: int = 2) -> Array:
    """The p-norm over all spatial axes."""
    return _root(xp, xp.sum(_powers(xp, X, p), _spatial(xp, X), keepdims=True), p, xp.dtype(X))
