"""Arithmetic of quantised operators: exact integer products, and the way back to eight bits."""

from __future__ import annotations

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from entrepot.runtime.providers.cpu.products import matmul

Array: TypeAlias = np.ndarray[Any, Any]


def less_zero(x: Array, zero_point: Array | None, channels: tuple[int, ...]) -> Array:
    """``x`` less its zero point, in float64; several zero points take the shape ``channels``, such as (-1, 1)."""
    x = x.astype(np.float64)
    if zero_point is None:
        return x
    zero = single(zero_point).astype(np.float64)
    return x - (zero.reshape(channels) if zero.ndim == 1 else zero)


def single(parameter: Array) -> Array:
    """A scale or zero point; one that is a list of one number is that number, and adds no axis to what it meets."""
    return parameter.reshape(()) if parameter.shape == (1,) else parameter


def exact_product(a: Array, b: Array) -> Array:
    """The int32 matrix product of 9-bit integers held in float64: exact there, and BLAS knows float64."""
    return matmul(a, b).astype(np.int64).astype(np.int32)


def requantized(total: Array, factor: Array, zero_point: Array) -> Array:
    """``total * factor + zero_point`` in the zero point's type: rounded half to even and saturated."""
    scaled = total * factor.astype(np.float32)
    if zero_point.dtype.kind not in "iu":  # float8 rounds as it converts, and saturates to its largest value
        top = float(ml_dtypes.finfo(zero_point.dtype).max)  # type: ignore[no-untyped-call]
        return np.clip(scaled + zero_point.astype(np.float32), -top, top).astype(np.float32).astype(zero_point.dtype)
    limits = np.iinfo(zero_point.dtype)
    return np.clip(np.rint(scaled) + zero_point, limits.min, limits.max).astype(zero_point.dtype)
