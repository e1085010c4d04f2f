from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.axes import is_shape
from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.precision import narrow, widen
from entrepot.runtime.kernels.table import shared

_CUBIC_A = -0.75

_Tap: TypeAlias = tuple[Array, Array | None, Array | None]
"""Along one axis: an index as a float, its weight, and whether it is one at all; what is not adds nothing."""


@shared("GridSample", 22)
def grid_sample(
    xp: Backend,
    X: Array,
    grid: Array,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Array:
    """Interpolate ``X`` (N, C, ...) at the normalised coordinates in ``grid``, whose last axis is x, y(, z)."""
    if padding_mode not in ("zeros", "border", "reflection"):
        raise InputError(f"GridSample has no padding_mode {padding_mode!r}")
    check_grid(tuple(xp.shape(X)), tuple(xp.shape(grid)))
    dtype = xp.dtype(X)
    values = X if mode == "nearest" else widen(xp, X)
    sizes = xp.shape(X)[2:]
    points = widen(xp, grid)
    out_shape = (*xp.shape(X)[:2], *xp.shape(grid)[1:-1])
    if not math.prod(out_shape):
        return xp.full(out_shape, 0, dtype)
    axes = []
    for axis, size in enumerate(sizes):
        at = _pixels(xp, points[..., len(sizes) - 1 - axis], size, align_corners)
        axes.append(_taps(xp, at, size, mode, padding_mode, align_corners))
    flat = xp.reshape(values, (*out_shape[:2], math.prod(sizes)))
    total = _weighted_sum(xp, flat, axes, sizes)
    return narrow(xp, xp.reshape(total, out_shape), dtype)


def check_grid(shape: tuple[int, ...], grid: tuple[int, ...]) -> None:
    """Refuse coordinates that do not lie in an array of this shape."""
    if not is_shape(grid, (shape[0], *grid[1:-1], len(shape) - 2)) or len(grid) != len(shape):
        raise InputError(f"GridSample: a grid of shape {grid} does not fit X of shape {shape}")


def _pixels(xp: Backend, x: Array, size: int, align_corners: int) -> Array:
    """From [-1, 1] to pixel indices; the ends are corner pixels' centres or their outer edges."""
    one, half = xp.scalar(1.0, like=x), xp.scalar(0.5, like=x)
    if align_corners:
        return (x + one) * half * xp.scalar(size - 1, like=x)
    return ((x + one) * xp.scalar(size, like=x) - one) * half


def _taps(xp: Backend, at: Array, size: int, mode: str, padding_mode: str, align_corners: int) -> list[_Tap]:
    """What is read along one axis."""
    if mode == "nearest":
        return [_placed(xp, xp.rint(at), None, size, padding_mode, align_corners)]
    if mode == "linear":
        at = at if padding_mode == "zeros" else _folded(xp, at, size, padding_mode, align_corners)
        offsets = range(2)
    elif mode == "cubic":
        offsets = range(-1, 3)
    else:
        raise InputError(f"GridSample has no mode {mode!r}")
    base = xp.floor(at)
    result = []
    for offset in offsets:
        distance = xp.abs(at - base - xp.scalar(offset, like=at))
        weight = xp.scalar(1.0, like=at) - distance if mode == "linear" else _cubic(xp, distance, near=offset in (0, 1))
        elsewhere = "zeros" if mode == "linear" else padding_mode  # which is folded already
        result.append(_placed(xp, base + xp.scalar(offset, like=at), weight, size, elsewhere, align_corners))
    return result


def _cubic(xp: Backend, d: Array, *, near: bool) -> Array:
    a = _CUBIC_A

    def c(value: float) -> Array:
        return xp.scalar(value, like=d)

    if near:
        return (c(a + 2) * d - c(a + 3)) * d * d + c(1)
    return ((c(a) * d - c(5 * a)) * d + c(8 * a)) * d - c(4 * a)


def _placed(xp: Backend, at: Array, weight: Array | None, size: int, padding_mode: str, align_corners: int) -> _Tap:
    """An index inside the input; outside, zero padding adds nothing and the other modes read elsewhere."""
    if padding_mode != "zeros":
        at = xp.rint(_folded(xp, at, size, padding_mode, align_corners))
        return _clamped(xp, at, size), weight, None
    inside = (at >= xp.scalar(0.0, like=at)) & (at <= xp.scalar(size - 1, like=at))
    return _clamped(xp, at, size), weight, inside


def _clamped(xp: Backend, at: Array, size: int) -> Array:
    """Within the axis; NaN reads the first pixel."""
    at = xp.where(xp.isnan(at), xp.scalar(0.0, like=at), at)
    return xp.minimum(xp.maximum(at, xp.scalar(0.0, like=at)), xp.scalar(size - 1, like=at))


def _folded(xp: Backend, at: Array, size: int, padding_mode: str, align_corners: int) -> Array:
    if padding_mode == "border":
        return _clamped(xp, at, size)
    low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
    span = high - low
    if span <= 0:
        return xp.where(at == at, xp.scalar(0.0, like=at), at)  # noqa: PLR0124 (NaN stays NaN)
    period = xp.scalar(2 * span, like=at)
    # distance into the mirrored period, then folded at the far edge
    into = xp.abs(at - xp.scalar(low, like=at))
    into = into - xp.floor(into / period) * period
    into = xp.where(into > xp.scalar(span, like=at), period - into, into)
    return _clamped(xp, into + xp.scalar(low, like=at), size)


def _weighted_sum(xp: Backend, flat: Array, axes: Sequence[Sequence[_Tap]], sizes: Sequence[int]) -> Array:
    """The sum over every combination of one tap per axis."""
    batch, channels = xp.shape(flat)[:2]
    total = None
    for combination in itertools.product(*axes):
        index, weight, inside = None, None, None
        for (position, factor, within), size in zip(combination, sizes, strict=True):
            whole = xp.astype(position, np.dtype(np.int64))
            index = whole if index is None else index * size + whole
            if factor is not None:
                weight = factor if weight is None else weight * factor
            if within is not None:
                inside = within if inside is None else inside & within
        count = math.prod(xp.shape(index)[1:])
        picked = xp.take_along_axis(
            flat, xp.broadcast_to(xp.reshape(index, (batch, 1, count)), (batch, channels, count)), 2
        )
        if weight is not None:
            picked = _weighed(xp, picked, xp.reshape(weight, (batch, 1, count)))
        term = picked if inside is None else _kept(xp, picked, xp.reshape(inside, (batch, 1, count)))
        total = term if total is None else total + term
    return total


def _weighed(xp: Backend, picked: Array, weight: Array) -> Array:
    """The product, in the wider of both types; NaN and infinities count even where the weight is zero."""
    dtype = np.result_type(xp.dtype(picked), xp.dtype(weight))
    return xp.astype(picked, dtype) * xp.astype(weight, dtype)


def _kept(xp: Backend, picked: Array, inside: Array) -> Array:
    """Zero where nothing is read."""
    if xp.dtype(picked).kind == "O":
        raise InputError("GridSample on strings needs padding_mode border or reflection and mode nearest")
    return xp.where(inside, picked, xp.full((), 0, xp.dtype(picked)))
