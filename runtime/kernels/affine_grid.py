from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.axes import is_shape
from entrepot.runtime.kernels.backend import Array, Backend, HostArray
from entrepot.runtime.kernels.precision import narrow, widen
from entrepot.runtime.kernels.table import shared
from entrepot.runtime.room import claim


@shared("AffineGrid", 20)
def affine_grid(xp: Backend, theta: Array, size: HostArray, *, align_corners: int = 0) -> Array:
    """Where each output pixel of ``size`` (N, C, ...) lies in the input, under the affine maps ``theta``."""
    spatial = [int(extent) for extent in size[2:]]
    if not is_shape(xp.shape(theta), (size.tolist()[0], len(spatial), len(spatial) + 1)):
        raise InputError(f"AffineGrid: theta of shape {tuple(xp.shape(theta))} does not map to {size.tolist()}")
    claim((*spatial, len(spatial) + 1))
    matrices = widen(xp, theta)
    dtype = xp.dtype(matrices)
    axes = [_centres(extent, align_corners) for extent in spatial]
    mesh = np.meshgrid(*axes, indexing="ij")
    points = np.stack([*reversed(mesh), np.ones(spatial)], axis=-1).reshape(1, -1, len(spatial) + 1)  # x, y(, z), 1
    grid = xp.matmul(xp.asarray(points.astype(dtype)), xp.transpose(matrices, (0, 2, 1)))
    return narrow(xp, xp.reshape(grid, (xp.shape(theta)[0], *spatial, len(spatial))), xp.dtype(theta))


def _centres(extent: int, align_corners: int) -> np.ndarray[Any, Any]:
    """``extent`` coordinates in [-1, 1]: at the corner pixels' centres, or at their outer edges."""
    if align_corners:
        return np.linspace(-1.0, 1.0, extent) if extent > 1 else np.zeros(extent)
    return (2 * np.arange(extent) + 1) / max(extent, 1) - 1
