"""Normalisations with few passes and no more than one array of the input's size."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels import normalization as shared
from entrepot.runtime.kernels.axes import counted
from entrepot.runtime.kernels.precision import stash_dtype
from entrepot.runtime.providers.cpu.backend import NUMPY
from entrepot.runtime.providers.cpu.table import native

Array: TypeAlias = np.ndarray[Any, Any]


@native("LayerNormalization", 17)
def layer_normalization(
    X: Array, Scale: Array, B: Array | None = None, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> tuple[Array, Array, Array]:
    """Normalise over the axes from ``axis`` on; also the mean and the inverse deviation."""
    dtype = stash_dtype(X.dtype, stash_type)
    rows, kept = _rows(X, axis, dtype)
    mean = np.add.reduce(rows, 1, keepdims=True) / dtype.type(rows.shape[1])
    centred = rows - mean
    inverse = _inverse_deviation(centred, epsilon)
    y = np.multiply(centred, inverse, out=centred).reshape(X.shape)
    np.multiply(y, Scale, out=y, casting="same_kind")
    if B is not None:
        np.add(y, B, out=y, casting="same_kind")
    saved = ir.DataType(stash_type).numpy()  # what the schema calls U: never float64
    return (
        y.astype(X.dtype, copy=False),
        mean.reshape(kept).astype(saved, copy=False),
        inverse.reshape(kept).astype(saved, copy=False),
    )


@native("RMSNormalization", 23)
def rms_normalization(X: Array, scale: Array, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Array:
    """Divide by the root of the mean square over the axes from ``axis`` on."""
    rows, _ = _rows(X, axis, stash_dtype(X.dtype, stash_type))
    y = (rows * _inverse_deviation(rows, epsilon)).reshape(X.shape)
    return np.multiply(y, scale, out=y, casting="same_kind").astype(scale.dtype, copy=False)


def _rows(x: Array, axis: int, dtype: np.dtype[Any]) -> tuple[Array, tuple[int, ...]]:
    """``x`` as (rows, normalised points), and the shape of one statistic per row."""
    axis = counted(axis, x.ndim) if x.ndim else 0
    normalised = math.prod(x.shape[axis:])
    rows = x.astype(dtype, copy=False).reshape(math.prod(x.shape[:axis]), normalised)
    return rows, (*x.shape[:axis], *[1] * (x.ndim - axis))


def _inverse_deviation(rows: Array, epsilon: float) -> Array:
    mean_square = np.vecdot(rows, rows)[:, None] / rows.dtype.type(max(rows.shape[1], 1))
    return np.reciprocal(np.sqrt(mean_square + rows.dtype.type(epsilon)))


@native("InstanceNormalization", 22)
def instance_normalization(input: Array, scale: Array, B: Array, *, epsilon: float = 1e-5) -> Array:
    """Normalise each channel of each sample by its own mean and variance."""
    return group_normalization(input, scale, B, num_groups=input.shape[1], epsilon=epsilon)


@native("GroupNormalization", 21)
def group_normalization(
    X: Array, scale: Array, bias: Array, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> Array:
    """Normalise groups of channels of each sample; scale and bias are per channel."""
    dtype = stash_dtype(X.dtype, stash_type)
    batch, channels = X.shape[:2]
    if num_groups < 1 or channels % num_groups:
        raise InputError(f"{channels} channels cannot be split into num_groups={num_groups} groups")
    shared.check_channels(X.shape, scale.shape, bias.shape)
    points = math.prod(X.shape[2:])
    rows = X.astype(dtype, copy=False).reshape(batch * num_groups, channels // num_groups * points)
    centred = rows - np.add.reduce(rows, 1, keepdims=True) / dtype.type(max(rows.shape[1], 1))
    # one factor and one shift per channel: two passes instead of three
    factor = np.repeat(_inverse_deviation(centred, epsilon), channels // num_groups, axis=0).reshape(batch, channels)
    y = centred.reshape(batch, channels, points)
    np.multiply(y, (factor * scale.astype(dtype))[..., None], out=y)
    np.add(y, bias.astype(dtype)[:, None], out=y)
    return y.reshape(X.shape).astype(X.dtype, copy=False)


@native("BatchNormalization", 15)
def batch_normalization(
    X: Array,
    scale: Array,
    B: Array,
    input_mean: Array,
    input_var: Array,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> tuple[Array, Array, Array]:
    """Normalise each channel by the given statistics, or in training by the batch's own."""
    if training_mode:
        more = {"epsilon": epsilon, "momentum": momentum, "training_mode": training_mode}
        return shared.batch_normalization(NUMPY, X, scale, B, input_mean, input_var, **more)
    shared.check_channels(X.shape, scale.shape, B.shape, input_mean.shape, input_var.shape)
    dtype = stash_dtype(X.dtype)
    x, mean, var = X.astype(dtype, copy=False), input_mean.astype(dtype), input_var.astype(dtype)
    factor = scale.astype(dtype) / np.sqrt(var + dtype.type(epsilon))
    column = (-1, *[1] * (x.ndim - 2)) if x.ndim > 1 else (-1,)
    y = x * factor.reshape(column)
    np.add(y, (B.astype(dtype) - mean * factor).reshape(column), out=y)
    return y.astype(X.dtype, copy=False), input_mean, input_var
