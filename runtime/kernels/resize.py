"""Resize, one axis at a time: every output point is a weighted sum of a few input points along each axis.

The points and weights depend on sizes and scales only, so they are computed on the host, in float64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from entrepot.runtime.kernels.backend import Array, Backend, HostArray
from entrepot.runtime.kernels.precision import accumulation_dtype
from entrepot.runtime.kernels.resample import Sampling, Taps, resized_spans, taps
from entrepot.runtime.kernels.table import shared


@shared("Resize", 19)
def resize(
    xp: Backend,
    X: Array,
    roi: HostArray | None = None,
    scales: HostArray | None = None,
    sizes: HostArray | None = None,
    *,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Array:
    """Interpolate to the size that ``scales`` or ``sizes`` asks for."""
    sampling = Sampling(
        mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, bool(antialias), bool(exclude_outside)
    )
    shape = xp.shape(X)
    factors, lengths = _given(scales), _given(sizes)
    crop = _given(roi) if coordinate_transformation_mode == "tf_crop_and_resize" else None
    spans = resized_spans(shape, factors, lengths, crop, axes, keep_aspect_ratio_policy)
    plans = {axis: taps(span, sampling) for axis, span in spans.items()}
    return resampled(xp, X, plans, extrapolation_value)


def _given(values: HostArray | None) -> HostArray | None:
    """An absent input may also be spelled as an empty one."""
    return None if values is None or not values.size else values


def resampled(xp: Backend, x: Array, plans: Mapping[int, Taps], extrapolation_value: float) -> Array:
    """``x`` with each planned axis resampled; weighted sums of integers are taken in float64 and rounded."""
    dtype = xp.dtype(x)
    weighted = any(plan.weights is not None for plan in plans.values())
    if weighted:
        x = xp.astype(x, np.dtype(np.float64) if dtype.kind in "iub" else accumulation_dtype(dtype))
    for axis, plan in plans.items():
        x = _resampled_axis(xp, x, axis, plan)
    outside = _outside(plans, len(xp.shape(x)))
    if outside is not None:
        x = xp.where(xp.asarray(outside), xp.full((), extrapolation_value, xp.dtype(x)), x)
    return _back(xp, x, dtype) if weighted else x


def _resampled_axis(xp: Backend, x: Array, axis: int, plan: Taps) -> Array:
    if plan.weights is None:
        return xp.take(x, xp.asarray(plan.indices[:, 0]), axis)
    total: Any = None
    column = [-1 if i == axis else 1 for i in range(len(xp.shape(x)))]
    for index, weight in zip(plan.indices.T, plan.weights.T, strict=True):
        term = xp.take(x, xp.asarray(index), axis)
        term = term * xp.reshape(xp.asarray(weight, xp.dtype(x)), column)
        total = term if total is None else total + term
    return total


def _outside(plans: Mapping[int, Taps], rank: int) -> np.ndarray[Any, Any] | None:
    """Where any coordinate leaves the input, broadcastable to the result."""
    total: Any = None
    for axis, plan in plans.items():
        if plan.outside is not None:
            here = plan.outside.reshape([-1 if i == axis else 1 for i in range(rank)])
            total = here if total is None else total | here
    return total


def _back(xp: Backend, x: Array, dtype: np.dtype[Any]) -> Array:
    if dtype.kind in "iu":  # cubic weights overshoot, and an overshooting uint8 must not wrap
        limits = np.iinfo(dtype)
        x = xp.minimum(xp.maximum(xp.rint(x), xp.scalar(limits.min, like=x)), xp.scalar(limits.max, like=x))
    return xp.astype(x, dtype)
