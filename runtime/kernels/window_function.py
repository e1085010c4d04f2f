"""Tapers for spectral analysis: weighted sums of cosines over one period."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from entrepot.runtime.kernels.backend import Array, Backend, HostArray
from entrepot.runtime.kernels.table import shared


def _cosines(xp: Backend, size: HostArray, output_datatype: int, periodic: int, weights: tuple[float, ...]) -> Array:
    """w0 - w1 cos(a) + w2 cos(2a), with ``a`` from 0 to 2 pi over ``size`` points (or one fewer: symmetric)."""
    double = np.dtype(np.float64)
    count = int(size.item())
    period = max(count if periodic else count - 1, 1)
    angle = xp.arange(0, count, 1, double) * xp.full((), 2 * math.pi / period, double)
    total = xp.full((count,), weights[0], double)
    for order, weight in enumerate(weights[1:], start=1):
        term = xp.cos(angle * xp.full((), float(order), double))
        total = total + term * xp.full((), weight * (-1) ** order, double)
    return xp.astype(total, ir.DataType(output_datatype).numpy())


@shared("HannWindow", 17)
def hann_window(xp: Backend, size: HostArray, *, output_datatype: int = 1, periodic: int = 1) -> Array:
    """A raised cosine that touches zero."""
    return _cosines(xp, size, output_datatype, periodic, (0.5, 0.5))


@shared("HammingWindow", 17)
def hamming_window(xp: Backend, size: HostArray, *, output_datatype: int = 1, periodic: int = 1) -> Array:
    """A raised cosine whose first side lobe is cancelled: 25/46 and 21/46."""
    return _cosines(xp, size, output_datatype, periodic, (25 / 46, 21 / 46))


@shared("BlackmanWindow", 17)
def blackman_window(xp: Backend, size: HostArray, *, output_datatype: int = 1, periodic: int = 1) -> Array:
    """Two cosines: lower side lobes, a wider main one."""
    return _cosines(xp, size, output_datatype, periodic, (0.42, 0.5, 0.08))
