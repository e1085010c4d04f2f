"""Reductions over axes. Float16 and bfloat16 are summed in float32; an empty reduction gives the neutral element."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.axes import counted
from entrepot.runtime.kernels.backend import Array, Backend, HostArray
from entrepot.runtime.kernels.precision import is_floating, narrow, widen
from entrepot.runtime.kernels.table import shared


def _axes(xp: Backend, data: Array, axes: HostArray | None, noop: int) -> tuple[int, ...]:
    """The axes to reduce, not negative; without any it is all of them, or none where ``noop`` is set."""
    rank = len(xp.shape(data))
    given = [] if axes is None else axes.tolist()
    if not given:
        return () if noop else tuple(range(rank))
    if any(not -rank <= axis < rank for axis in given):
        raise InputError(f"axes {given} are out of range for an array of shape {tuple(xp.shape(data))}")
    return tuple(axis % rank for axis in given)


def _wide(xp: Backend, data: Array, axes: HostArray | None, noop: int) -> tuple[Array, tuple[int, ...]]:
    return widen(xp, data), _axes(xp, data, axes, noop)


def _count(xp: Backend, data: Array, axes: tuple[int, ...]) -> int:
    return math.prod(xp.shape(data)[axis] for axis in axes)


@shared("ReduceSum", 13)
def reduce_sum(
    xp: Backend, data: Array, axes: HostArray | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Array:
    """The sum over ``axes``."""
    x, over = _wide(xp, data, axes, noop_with_empty_axes)
    return narrow(xp, xp.sum(x, over, keepdims=bool(keepdims)), xp.dtype(data))


@shared("ReduceMean", 18)
def reduce_mean(
    xp: Backend, data: Array, axes: HostArray | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Array:
    """The mean over ``axes``; of integers it is cut off."""
    x, over = _wide(xp, data, axes, noop_with_empty_axes)
    total = xp.sum(x, over, keepdims=bool(keepdims))
    count = _count(xp, x, over)
    if is_floating(xp.dtype(x)):
        return narrow(xp, total / xp.scalar(count, like=total), xp.dtype(data))
    return xp.astype(xp.astype(total, np.dtype(np.float64)) / count, xp.dtype(data))


@shared("ReduceProd", 18)
def reduce_prod(
    xp: Backend, data: Array, axes: HostArray | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Array:
    """The product over ``axes``."""
    x, over = _wide(xp, data, axes, noop_with_empty_axes)
    return narrow(xp, xp.prod(x, over, keepdims=bool(keepdims)), xp.dtype(data))


@shared("ReduceMax", 20)
def reduce_max(
    xp: Backend, data: Array, axes: HostArray | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Array:
    """The maximum over ``axes``; NaN wins."""
    return xp.max(data, _axes(xp, data, axes, noop_with_empty_axes), keepdims=bool(keepdims))


@shared("ReduceMin", 20)
def reduce_min(
    xp: Backend, data: Array, axes: HostArray | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Array:
    """The minimum over ``axes``; NaN wins."""
    return xp.min(data, _axes(xp, data, axes, noop_with_empty_axes), keepdims=bool(keepdims))


@shared("ReduceL1", 18)
def reduce_l1(
    xp: Backend, data: Array, axes: HostArray | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Array:
    """The sum of absolute values over ``axes``."""
    x, over = _wide(xp, data, axes, noop_with_empty_axes)
    return narrow(xp, xp.sum(xp.abs(x), over, keepdims=bool(keepdims)), xp.dtype(data))


@shared("ReduceL2", 18)
def reduce_l2(
    xp: Backend, data: Array, axes: HostArray | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Array:
    """The root of the sum of squares over ``axes``."""
    x, over = _wide(xp, data, axes, noop_with_empty_axes)
    return _of_sum(xp, x * x, over, keepdims, data, xp.sqrt)


@shared("ReduceSumSquare", 18)
def reduce_sum_square(
    xp: Backend, data: Array, axes: HostArray | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Array:
    """The sum of squares over ``axes``."""
    x, over = _wide(xp, data, axes, noop_with_empty_axes)
    return narrow(xp, xp.sum(x * x, over, keepdims=bool(keepdims)), xp.dtype(data))


@shared("ReduceLogSum", 28)
def reduce_log_sum(
    xp: Backend, data: Array, axes: HostArray | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Array:
    """The logarithm of the sum over ``axes``."""
    x, over = _wide(xp, data, axes, noop_with_empty_axes)
    return _of_sum(xp, x, over, keepdims, data, xp.log)


@shared("ReduceLogSumExp", 28)
def reduce_log_sum_exp(
    xp: Backend, data: Array, axes: HostArray | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Array:
    """The logarithm of the sum of exponentials over ``axes``, shifted by the maximum so that nothing overflows."""
    x, over = _wide(xp, data, axes, noop_with_empty_axes)
    if not is_floating(xp.dtype(x)):
        x = xp.astype(x, np.dtype(np.float64))
    top = xp.max(x, over, keepdims=True)
    zero = xp.scalar(0, like=x)
    shift = xp.where(xp.isinf(top), zero, top)  # an infinite maximum would give inf - inf
    result = xp.log(xp.sum(xp.exp(x - shift), over, keepdims=True)) + shift
    return narrow(xp, result if keepdims else xp.squeeze(result, over), xp.dtype(data))


def _of_sum(
    xp: Backend, x: Array, over: tuple[int, ...], keepdims: int, data: Array, function: Callable[[Array], Array]
) -> Array:
    """``function`` of a sum; of integers it is taken in float64 and cut off."""
    total = xp.sum(x, over, keepdims=bool(keepdims))
    if not is_floating(xp.dtype(total)):
        total = xp.astype(total, np.dtype(np.float64))
    return narrow(xp, function(total), xp.dtype(data))


@shared("ArgMax", 13)
def arg_max(xp: Backend, data: Array, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Array:
    """Where the maximum along ``axis`` is: the first place, or the last."""
    return _extreme(xp, xp.argmax, data, axis, keepdims, select_last_index)


@shared("ArgMin", 13)
def arg_min(xp: Backend, data: Array, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Array:
    """Where the minimum along ``axis`` is: the first place, or the last."""
    return _extreme(xp, xp.argmin, data, axis, keepdims, select_last_index)


def _extreme(
    xp: Backend, find: Callable[[Array, int], Array], data: Array, axis: int, keepdims: int, last: int
) -> Array:
    place = find(xp.flip(data, axis) if last else data, axis)
    place = xp.astype(xp.asarray(place), np.dtype(np.int64))
    if last:
        place = xp.scalar(xp.shape(data)[axis] - 1, like=place) - place
    return xp.expand_dims(place, axis) if keepdims and xp.shape(data) else place


@shared("CumSum", 14)
def cum_sum(xp: Backend, x: Array, axis: HostArray, *, exclusive: int = 0, reverse: int = 0) -> Array:
    """Running sums along ``axis``; ``exclusive`` leaves the element itself out, ``reverse`` runs from the end."""
    return _running(xp, xp.cumsum, x, axis, exclusive, reverse, neutral=0)


@shared("CumProd", 26)
def cum_prod(xp: Backend, x: Array, axis: HostArray, *, exclusive: int = 0, reverse: int = 0) -> Array:
    """Running products along ``axis``; ``exclusive`` leaves the element itself out, ``reverse`` runs from the end."""
    return _running(xp, xp.cumprod, x, axis, exclusive, reverse, neutral=1)


def _running(
    xp: Backend,
    accumulate: Callable[[Array, int], Array],
    x: Array,
    axis: HostArray,
    exclusive: int,
    reverse: int,
    *,
    neutral: int,
) -> Array:
    along = counted(int(axis.item()), len(xp.shape(x)))
    y = widen(xp, x)
    y = xp.flip(y, along) if reverse else y
    if exclusive and xp.shape(x)[along]:
        rest = xp.split(y, (xp.shape(x)[along] - 1, 1), along)[0]
        widths = [(int(n == along), 0) for n in range(len(xp.shape(x)))]
        y = xp.pad(rest, widths, "constant", neutral)
    y = accumulate(y, along)
    return narrow(xp, xp.flip(y, along) if reverse else y, xp.dtype(x))
