"""Interpolation at given coordinates, by torch's own kernel for images and volumes of full precision."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from entrepot.runtime.kernels import grid_sample as shared
from entrepot.runtime.providers.torch.backend import TorchBackend
from entrepot.runtime.providers.torch.table import native

_MODES = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}


@native("GridSample", 22)
def grid_sample(
    X: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Tensor:
    """Interpolate ``X`` (N, C, ...) at the normalised coordinates in ``grid``, whose last axis is x, y(, z)."""
    known = padding_mode in ("zeros", "border", "reflection") and X.ndim in ((4,) if mode == "cubic" else (4, 5))
    full = X.dtype == grid.dtype and X.dtype in (torch.float32, torch.float64) and bool(X.numel() and grid.numel())
    if mode not in _MODES or not (known and full):
        backend = TorchBackend(X.device)
        return shared.grid_sample(
            backend, X, grid, align_corners=align_corners, mode=mode, padding_mode=padding_mode
        )  # fmt: skip
    return functional.grid_sample(X, grid, _MODES[mode], padding_mode, bool(align_corners))
