"""Distinct elements, by torch's own sort."""

from __future__ import annotations

import torch
from torch import Tensor

from entrepot.runtime.providers.torch import moving
from entrepot.runtime.providers.torch.table import native
from entrepot.runtime.providers.torch.unsigned import ordered


@native("Unique", 28)
def unique(X: Tensor, *, axis: int | None = None, sorted: int = 1) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The distinct elements or slices; where each comes first, which one each input is, and how often each occurs."""
    x, dim = _sortable(X), axis
    if axis is not None and 0 in X.shape:  # slices of nothing are all alike
        x, dim = x.new_zeros(X.shape[axis]), 0
    _, inverse, counts = torch.unique(x, sorted=True, return_inverse=True, return_counts=True, dim=dim)
    inverse = inverse.reshape(-1)
    places = torch.arange(inverse.numel(), device=x.device)
    first = torch.full_like(counts, inverse.numel()).scatter_reduce(0, inverse, places, "amin")
    if not sorted:
        order = torch.argsort(first, stable=True)
        rank = torch.empty_like(order).scatter(0, order, torch.arange(order.numel(), device=x.device))
        first, inverse, counts = first[order], rank[inverse], counts[order]
    values = moving.take(X.reshape(-1) if axis is None else X, first, 0 if axis is None else axis)
    return values, first, inverse, counts


def _sortable(x: Tensor) -> Tensor:
    """Integers in the order of floats, of which all NaNs are one and the largest, and both zeros are one."""
    if not x.is_floating_point():
        return ordered(x)
    wide = x if x.dtype is torch.float64 else x.to(torch.float32)
    bits = torch.where(wide == 0, 0.0, wide).view(torch.int64 if wide.dtype is torch.float64 else torch.int32)
    most = torch.iinfo(bits.dtype).max
    return torch.where(torch.isnan(wide), most, torch.where(bits < 0, bits ^ most, bits))
