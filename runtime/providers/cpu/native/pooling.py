"""Pools as a few elementwise passes over strided views, one per point of the window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime import room
from entrepot.runtime.kernels.pooling import lowest, window_counts
from entrepot.runtime.kernels.precision import accumulation_dtype
from entrepot.runtime.kernels.window import Window, window
from entrepot.runtime.providers.cpu.native.windows import padded, windows
from entrepot.runtime.providers.cpu.table import native

Array: TypeAlias = np.ndarray[Any, Any]


def pool_window(
    source: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str,
    ceil_mode: int,
) -> Window:
    """The window of a pool; kept, since a small pool costs less than working it out."""
    given = [None if values is None else tuple(values) for values in (strides, dilations, pads)]
    return _kept_window(tuple(source), tuple(kernel), *given, auto_pad, ceil_mode)


_kept_window = lru_cache(maxsize=512)(window)


def reduce_windows(x: Array, win: Window, combine: np.ufunc, neutral: Any) -> Array:
    """Combine each window's points, one axis after the other: k + k passes rather than k * k, and no padded copy."""
    for axis in range(len(win.kernel)):
        x = _reduce_axis(x, win, axis, combine, neutral)
    return x


def _reduce_axis(x: Array, win: Window, axis: int, combine: np.ufunc, neutral: Any) -> Array:
    whole, some = _reaches(win, axis)
    lead = (slice(None),) * (axis + 2)
    views = [x[(*lead, source)] for source in whole]
    if len(views) == 1 and not some:
        return views[0]
    if len(views) >= 2:
        total = np.asarray(combine(views[0], views[1]))
        for view in views[2:]:
            combine(total, view, out=total)
    elif views:
        total = views[0].copy()
    else:
        total = room.full((*x.shape[: axis + 2], win.target[axis], *x.shape[axis + 3 :]), neutral, x.dtype)
    for target, source in some:
        part = total[(*lead, target)]
        combine(part, x[(*lead, source)], out=part)
    return total


@lru_cache(maxsize=512)
def _reaches(win: Window, axis: int) -> tuple[list[slice], list[tuple[slice, slice]]]:
    """What points of the window read that are always in the input; and for which outputs the others are, and what."""
    reaches = [_reach(win, axis, tap) for tap in range(win.kernel[axis])]
    everywhere = slice(0, win.target[axis])
    whole = [source for target, source in reaches if target == everywhere]
    return whole, [(target, source) for target, source in reaches if target != everywhere]


def _reach(win: Window, axis: int, tap: int) -> tuple[slice, slice]:
    """The outputs for which one point of the window lies in the input, and what they read there."""
    stride, offset = win.strides[axis], tap * win.dilations[axis] - win.begin[axis]
    first = max(-(offset // stride), 0)
    last = min((win.source[axis] - 1 - offset) // stride, win.target[axis] - 1)
    if last < first:
        return slice(0, 0), slice(0, 0)
    return slice(first, last + 1), slice(first * stride + offset, last * stride + offset + 1, stride)


@native("MaxPool", 22)
def max_pool(
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
    win = pool_window(X.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    dtype = accumulation_dtype(X.dtype) if X.dtype == ml_dtypes.bfloat16 else X.dtype
    x = X.astype(dtype, copy=False)
    y = np.array(
        reduce_windows(x, win, np.maximum, lowest(dtype)), X.dtype, order="C", copy=max(win.kernel) == 1 or None
    )
    return (y, _places_of_maxima(padded(x, win, lowest(dtype)), win, storage_order)) if n_outputs > 1 else (y,)


def _places_of_maxima(x: Array, win: Window, storage_order: int) -> Array:
    """Flat indices into the unpadded input; the first of equal maxima in the window's order."""
    rank = len(win.kernel)
    points = windows(x, win).reshape(*x.shape[:2], win.points, *win.target)
    tap = np.unravel_index(points.argmax(axis=2), win.kernel)
    coordinates = []
    for axis in range(rank):
        start = np.arange(win.target[axis]) * win.strides[axis] - win.begin[axis]
        coordinates.append(
            tap[axis] * win.dilations[axis] + start.reshape([-1 if i == axis else 1 for i in range(rank)])
        )
    plane = _flattened(coordinates, win.source, storage_order)
    first = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * rank) * math.prod(win.source)
    return plane + first


def _flattened(coordinates: Sequence[Array], sizes: Sequence[int], storage_order: int) -> Array:
    pairs = list(zip(coordinates, sizes, strict=True))
    if storage_order:
        pairs.reverse()
    return reduce(lambda flat, pair: flat * pair[1] + pair[0], pairs, np.zeros((), np.int64))


@native("AveragePool", 22)
def average_pool(
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
    win = pool_window(X.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    x = X.astype(accumulation_dtype(X.dtype), copy=False)
    total = reduce_windows(x, win, np.add, 0)
    return (total / window_counts(win, count_include_pad).astype(x.dtype)).astype(X.dtype, copy=False)


@native("LpPool", 22)
def lp_pool(
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
    win = pool_window(X.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    x = np.abs(X.astype(accumulation_dtype(X.dtype), copy=False)) ** p
    return (reduce_windows(x, win, np.add, 0) ** (1 / p)).astype(X.dtype, copy=False)


@native("GlobalAveragePool", 22)
def global_average_pool(X: Array) -> Array:
    """The mean over all spatial axes."""
    x = X.astype(accumulation_dtype(X.dtype), copy=False)
    total = np.add.reduce(x, tuple(range(2, X.ndim)), keepdims=True)
    return np.divide(total, x.dtype.type(math.prod(X.shape[2:])), out=total).astype(X.dtype, copy=False)


@native("GlobalMaxPool", 22)
def global_max_pool(X: Array) -> Array:
    """The maximum over all spatial axes."""
    return X.max(axis=tuple(range(2, X.ndim)), keepdims=True)


@native("GlobalLpPool", 22)
def global_lp_pool(X: Array, *, p: int = 2) -> Array:
    """The p-norm over all spatial axes."""
    x = np.abs(X.astype(accumulation_dtype(X.dtype), copy=False)) ** p
    return (x.sum(axis=tuple(range(2, X.ndim)), keepdims=True) ** (1 / p)).astype(X.dtype, copy=False)


@native("MaxUnpool", 22)
def max_unpool(
    X: Array,
    I: Array,  # noqa: E741
    output_shape: Array | None = None,
    *,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """Put each maximum back where MaxPool found it, zeros elsewhere."""
    if X.shape != I.shape:
        raise InputError(f"MaxUnpool: indices of shape {I.shape} for values of shape {X.shape}")
    rank = X.ndim - 2
    steps = strides or (1,) * rank
    pads = pads or (0,) * (2 * rank)
    sizes = [
        (n - 1) * s + k - b - e
        for n, s, k, b, e in zip(X.shape[2:], steps, kernel_shape, pads[:rank], pads[rank:], strict=True)
    ]
    pooled = (*X.shape[:2], *sizes)
    shape = pooled if output_shape is None else tuple(int(size) for size in output_shape)
    flat = np.asarray(I).ravel()
    if flat.size and (flat.min() < 0 or flat.max() >= math.prod(pooled)):
        raise InputError(f"MaxUnpool has an index outside the {math.prod(pooled)} points of its pooled input")
    # the indices count in the shape that was pooled; a larger output shape holds it in its corner
    y = room.zeros(shape, X.dtype)
    y[np.unravel_index(flat, pooled)] = X.ravel()
    return y
