"""Interpolation at given coordinates, by torch's own kernel for images and volumes of full precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from entrepot.runtime.kernels import grid_sample as shared
from entrepot.runtime.kernels import resize as shared_resize
from entrepot.runtime.kernels.resample import Sampling, Taps, resized_spans, taps
from entrepot.runtime.providers.torch.backend import TorchBackend
from entrepot.runtime.providers.torch.table import native

HostArray = np.ndarray[Any, Any]

_MODES = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}


@native("GridSample", 22)
def grid_sample(
    X: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Tensor:
    """Interpolate ``X`` (N, C, ...) at the normalised coordinates in ``grid``, whose last axis is x, y(, z)."""
    shared.check_grid(tuple(X.shape), tuple(grid.shape))
    known = padding_mode in ("zeros", "border", "reflection") and X.ndim in ((4,) if mode == "cubic" else (4, 5))
    full = X.dtype == grid.dtype and X.dtype in (torch.float32, torch.float64) and bool(X.numel() and grid.numel())
    if mode not in _MODES or not (known and full):
        backend = TorchBackend(X.device)
        return shared.grid_sample(
            backend, X, grid, align_corners=align_corners, mode=mode, padding_mode=padding_mode
        )  # fmt: skip
    return functional.grid_sample(X, grid, _MODES[mode], padding_mode, bool(align_corners))


@native("Resize", 19)
def resize(
    X: Tensor,
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
) -> Tensor:
    """Interpolate to the size that ``scales`` or ``sizes`` asks for."""
    sampling = Sampling(
        mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, bool(antialias), bool(exclude_outside)
    )
    factors, lengths = (values if values is not None and values.size else None for values in (scales, sizes))
    crop = roi if coordinate_transformation_mode == "tf_crop_and_resize" and roi is not None and roi.size else None
    spans = resized_spans(tuple(X.shape), factors, lengths, crop, axes, keep_aspect_ratio_policy)
    plans = {axis: taps(span, sampling) for axis, span in spans.items()}
    if X.ndim == 4 and X.is_floating_point() and _repeats(plans, X.shape):
        return torch.ops.aten.upsample_nearest2d(X, [_length(plans, X.shape, axis) for axis in (2, 3)])
    return shared_resize.resampled(TorchBackend(X.device), X, plans, extrapolation_value)


def _length(plans: Mapping[int, Taps], shape: Sequence[int], axis: int) -> int:
    return len(plans[axis].indices) if axis in plans else shape[axis]


def _repeats(plans: Mapping[int, Taps], shape: Sequence[int]) -> bool:
    """Whether each pixel of an image just becomes several, which keeps the order of its axes in memory."""
    return all(
        plan.weights is None
        and plan.outside is None
        and (axis in (2, 3) or np.array_equal(plan.indices[:, 0], np.arange(shape[axis])))
        and not len(plan.indices) % shape[axis]
        and np.array_equal(plan.indices[:, 0], np.arange(len(plan.indices)) * shape[axis] // len(plan.indices))
        for axis, plan in plans.items()
    )
