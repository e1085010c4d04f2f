"""Normalisations: all subtract or divide by a statistic taken over some axes; they differ in which ones.

Statistics are taken in float32 for float16 and bfloat16, and the result is rounded once, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.axes import is_shape
from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.precision import narrow, stash_dtype, trailing_axes, widen
from entrepot.runtime.kernels.table import shared


@shared("BatchNormalization", 15)
def batch_normalization(
    xp: Backend,
    X: Array,
    scale: Array,
    B: Array,
    input_mean: Array,
    input_var: Array,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Array | tuple[Array, ...]:
    """Normalise each channel by the given statistics, or in training by the batch's own."""
    dtype = stash_dtype(xp.dtype(X))
    x, mean, var = xp.astype(X, dtype), xp.astype(input_mean, dtype), xp.astype(input_var, dtype)
    if training_mode:
        axes = tuple(axis for axis in range(len(xp.shape(x))) if axis != 1)
        batch_mean, batch_var = _moments(xp, x, axes)
        y = _normalize_channels(xp, x, scale, B, batch_mean, batch_var, epsilon)
        running = [_blend(xp, old, new, momentum) for old, new in ((mean, batch_mean), (var, batch_var))]
        stored = xp.dtype(input_mean)
        return narrow(xp, y, xp.dtype(X)), narrow(xp, running[0], stored), narrow(xp, running[1], stored)
    y = _normalize_channels(xp, x, scale, B, mean, var, epsilon)
    return narrow(xp, y, xp.dtype(X)), input_mean, input_var


def _moments(xp: Backend, x: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    mean = _mean(xp, x, axes)
    return xp.squeeze(mean, axes), xp.squeeze(_mean(xp, (x - mean) * (x - mean), axes), axes)


def _mean(xp: Backend, x: Array, axes: tuple[int, ...]) -> Array:
    count = math.prod(xp.shape(x)[axis] for axis in axes)
    return xp.sum(x, axes, keepdims=True) / xp.scalar(count, like=x)


def _blend(xp: Backend, old: Array, new: Array, momentum: float) -> Array:
    return old * xp.scalar(momentum, like=old) + new * xp.scalar(1 - momentum, like=old)


def _normalize_channels(
    xp: Backend, x: Array, scale: Array, bias: Array, mean: Array, var: Array, epsilon: float
) -> Array:
    check_channels(xp.shape(x), *map(xp.shape, (scale, bias, mean, var)))
    factor = xp.astype(scale, xp.dtype(x)) / xp.sqrt(var + xp.scalar(epsilon, like=var))
    shift = xp.astype(bias, xp.dtype(x)) - mean * factor
    return x * _per_channel(xp, factor, x) + _per_channel(xp, shift, x)


def check_channels(shape: Sequence[int], *given: Sequence[int]) -> None:
    """Refuse scales and shifts that are not one for each channel of an array of this shape."""
    for each in given:
        if not is_shape(each, (shape[1] if len(shape) > 1 else 1,)):
            raise InputError(f"{tuple(each)} is not the shape of one number for each channel of shape {tuple(shape)}")


def _check_scales(shape: Sequence[int], *given: Sequence[int]) -> None:
    """Refuse scales and shifts that have more axes than what they scale: the result would, too."""
    if any(len(each) > len(shape) for each in given):
        raise InputError(f"scales of shapes {[tuple(each) for each in given]} do not broadcast to {tuple(shape)}")


def _per_channel(xp: Backend, values: Array, x: Array) -> Array:
    """``values`` (C,) shaped so that they broadcast along axis 1 of ``x``."""
    check_channels(xp.shape(x), xp.shape(values))
    return xp.reshape(values, (-1, *[1] * (len(xp.shape(x)) - 2)))


@shared("InstanceNormalization", 22)
def instance_normalization(
    xp: Backend,
    input: Array,
    scale: Array,
    B: Array,
    *,
    epsilon: float = 1e-5,
) -> Array:
    """Normalise each channel of each sample by its own mean and variance."""
    x = widen(xp, input)
    y = _standardize(xp, x, tuple(range(2, len(xp.shape(x)))), epsilon)
    y = y * _per_channel(xp, widen(xp, scale), x) + _per_channel(xp, widen(xp, B), x)
    return narrow(xp, y, xp.dtype(input))


def _standardize(xp: Backend, x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    centred = x - _mean(xp, x, axes)
    variance = _mean(xp, centred * centred, axes)
    return centred / xp.sqrt(variance + xp.scalar(epsilon, like=x))


@shared("GroupNormalization", 21)
def group_normalization(
    xp: Backend, X: Array, scale: Array, bias: Array, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> Array:
    """Normalise groups of channels of each sample; scale and bias are per channel."""
    shape = xp.shape(X)
    if num_groups < 1 or shape[1] % num_groups:
        raise InputError(f"{shape[1]} channels cannot be split into num_groups={num_groups} groups")
    x = xp.astype(X, stash_dtype(xp.dtype(X), stash_type))
    per_group = math.prod(shape[1:]) // num_groups
    y = xp.reshape(_standardize(xp, xp.reshape(x, (shape[0], num_groups, per_group)), (2,), epsilon), shape)
    y = y * _per_channel(xp, xp.astype(scale, xp.dtype(x)), x) + _per_channel(xp, xp.astype(bias, xp.dtype(x)), x)
    return narrow(xp, y, xp.dtype(X))


@shared("LayerNormalization", 17)
def layer_normalization(
    xp: Backend,
    X: Array,
    Scale: Array,
    B: Array | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> tuple[Array, Array, Array]:
    """Normalise over the axes from ``axis`` on; also the mean and the inverse deviation."""
    _check_scales(xp.shape(X), xp.shape(Scale), () if B is None else xp.shape(B))
    x = xp.astype(X, stash_dtype(xp.dtype(X), stash_type))
    axes = trailing_axes(len(xp.shape(x)), axis)
    mean = _mean(xp, x, axes)
    centred = x - mean
    inverse = xp.scalar(1.0, like=x) / xp.sqrt(_mean(xp, centred * centred, axes) + xp.scalar(epsilon, like=x))
    y = centred * inverse * xp.astype(Scale, xp.dtype(x))
    y = y if B is None else y + xp.astype(B, xp.dtype(x))
    saved = ir.DataType(stash_type).numpy()  # what the schema calls U: never float64
    return narrow(xp, y, xp.dtype(X)), narrow(xp, mean, saved), narrow(xp, inverse, saved)


@shared("RMSNormalization", 23)
def rms_normalization(
    xp: Backend, X: Array, scale: Array, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Array:
    """Divide by the root of the mean square over the axes from ``axis`` on."""
    _check_scales(xp.shape(X), xp.shape(scale))
    x = xp.astype(X, stash_dtype(xp.dtype(X), stash_type))
    mean_square = _mean(xp, x * x, trailing_axes(len(xp.shape(x)), axis))
    y = x / xp.sqrt(mean_square + xp.scalar(epsilon, like=x)) * xp.astype(scale, xp.dtype(x))
    return narrow(xp, y, xp.dtype(scale))


@shared("LpNormalization", 22)
def lp_normalization(xp: Backend, input: Array, *, axis: int = -1, p: int = 2) -> Array:
    """Divide by the 1- or 2-norm along ``axis``; a zero norm gives zeros."""
    if p not in (1, 2):
        raise InputError(f"LpNormalization takes p=1 or p=2, not {p}")
    x = widen(xp, input)
    norm = xp.sum(xp.abs(x), (axis,), keepdims=True) if p == 1 else xp.sqrt(xp.sum(x * x, (axis,), keepdims=True))
    zero = norm == xp.scalar(0.0, like=x)
    y = xp.where(zero, xp.scalar(0.0, like=x), x / xp.where(zero, xp.scalar(1.0, like=x), norm))
    return narrow(xp, y, xp.dtype(input))


@shared("MeanVarianceNormalization", 13)
def mean_variance_normalization(xp: Backend, X: Array, *, axes: tuple[int, ...] = (0, 2, 3)) -> Array:
    """Subtract the mean and divide by the deviation over ``axes``."""
    x = widen(xp, X)
    centred = x - _mean(xp, x, tuple(axes))
    deviation = xp.sqrt(_mean(xp, centred * centred, tuple(axes)))
    return narrow(xp, centred / (deviation + xp.scalar(1e-9, like=x)), xp.dtype(X))


@shared("LRN", 13)
def local_response_normalization(
    xp: Backend, X: Array, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Array:
    """Divide by a power of the mean square of ``size`` neighbouring channels."""
    x = widen(xp, X)
    channels = xp.shape(x)[1]
    before, after = min((size - 1) // 2, channels), min(size // 2, channels)  # there is nothing beyond all of them
    widths = [(before, after) if axis == 1 else (0, 0) for axis in range(len(xp.shape(x)))]
    squares = xp.pad(x * x, widths, "constant", 0)
    total = squares[:, :channels]
    for shift in range(1, before + 1 + after):
        total = total + squares[:, shift : shift + channels]
    divisor = xp.scalar(bias, like=x) + xp.scalar(alpha / size, like=x) * total
    return narrow(xp, x / xp.power(divisor, xp.scalar(beta, like=x)), xp.dtype(X))
