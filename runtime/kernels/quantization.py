"""Linear quantisation: per tensor, per axis or per block, depending on the shape of the scale."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.axes import counted, is_shape
from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.cast import convert, element_type
from entrepot.runtime.kernels.precision import is_floating
from entrepot.runtime.kernels.table import shared

_F32 = np.dtype(np.float32)
_SCALE_ONLY = np.dtype(ml_dtypes.float8_e8m0fnu)


@shared("QuantizeLinear", 28)
def quantize_linear(
    xp: Backend,
    x: Array,
    y_scale: Array,
    y_zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Array:
    """Round x / scale + zero point, cut to the range of the quantised type."""
    if y_zero_point is not None:
        target = xp.dtype(y_zero_point)
        if output_dtype and element_type(output_dtype) != target:
            raise InputError(
                f"QuantizeLinear: output_dtype is {element_type(output_dtype)}, the zero point is {target}"
            )
    else:
        target = element_type(output_dtype) if output_dtype else np.dtype(np.uint8)
    work = element_type(precision) if precision else _division_type(xp, y_scale)
    scale = spread(xp, xp.astype(y_scale, work), xp.shape(x), axis, block_size)
    quotient = xp.astype(xp.astype(x, work) / scale, _F32)
    if not is_floating(target):
        quotient = xp.rint(quotient)
    if y_zero_point is not None:
        quotient = quotient + spread(xp, xp.astype(y_zero_point, _F32), xp.shape(x), axis, block_size)
    if is_floating(target):
        return convert(xp, quotient, target, saturate=saturate)
    return _cut(xp, quotient, target)


def _division_type(xp: Backend, scale: Array) -> np.dtype[Any]:
    dtype = xp.dtype(scale)
    return _F32 if dtype == _SCALE_ONLY or not is_floating(dtype) else dtype


def _cut(xp: Backend, x: Array, dtype: np.dtype[Any]) -> Array:
    bounds = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    low, high = xp.scalar(float(bounds.min), like=x), xp.scalar(float(bounds.max), like=x)
    return xp.astype(xp.minimum(xp.maximum(x, low), high), dtype)


@shared("DequantizeLinear", 28)
def dequantize_linear(
    xp: Backend,
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Array:
    """(x - zero point) * scale."""
    target = element_type(output_dtype) if output_dtype else xp.dtype(x_scale)
    centred = xp.astype(x, _F32)
    if x_zero_point is not None:
        centred = centred - spread(xp, xp.astype(x_zero_point, _F32), xp.shape(x), axis, block_size)
    return xp.astype(centred * spread(xp, xp.astype(x_scale, _F32), xp.shape(x), axis, block_size), target)


def spread(xp: Backend, values: Array, shape: tuple[int, ...], axis: int, block_size: int) -> Array:
    """A scale or zero point, per tensor, axis or block, in a shape that broadcasts to ``shape``."""
    given = xp.shape(values)
    if not given or given == (1,):
        return xp.reshape(values, ())
    if len(given) == 1 and not block_size:
        along = counted(axis, len(shape))
        if given[0] != shape[along]:
            raise InputError(f"a scale of shape {given} does not fit axis {axis} of shape {tuple(shape)}")
        return xp.reshape(values, [-1 if n == along else 1 for n in range(len(shape))])
    if block_size < 1:
        raise InputError(f"a scale of shape {tuple(given)} with block_size={block_size} does not fit {tuple(shape)}")
    along = counted(axis, len(shape))
    blocks = [-(-size // block_size) if n == along else size for n, size in enumerate(shape)]
    if not is_shape(given, blocks):
        raise InputError(f"a scale of shape {tuple(given)} with block_size={block_size} does not fit {tuple(shape)}")
    places = xp.asarray(np.arange(shape[along]) // block_size)
    return xp.take(values, places, along)


@shared("DynamicQuantizeLinear", 11)
def dynamic_quantize_linear(xp: Backend, x: Array) -> tuple[Array, Array, Array]:
    """Quantise to uint8 over the range of ``x`` with zero in it; also the scale and the zero point."""
    axes, zero = tuple(range(len(xp.shape(x)))), xp.scalar(0, like=x)
    low, high = xp.minimum(xp.min(x, axes), zero), xp.maximum(xp.max(x, axes), zero)
    top = xp.scalar(255, like=x)
    # an array of zeros has no range: any scale represents it, and 1 avoids a division by 0
    scale = xp.where(low == high, xp.scalar(1, like=x), (high - low) / top)
    zero_point = xp.rint(xp.minimum(xp.maximum(-low / scale, zero), top))
    y = _cut(xp, xp.rint(x / scale) + zero_point, np.dtype(np.uint8))
    return y, scale, xp.astype(zero_point, np.dtype(np.uint8))
