"""Interpolation as elements that are picked and weighted, where Resize is not enough.

By scales that are made of sizes, ``scale_factor=x.shape[-1] / y.shape[-1]``: torch (2.13) makes numbers of them, so
that the sizes become fixed. Here what is picked, and how much each counts, are computed in the graph from the scale, in
single precision, as torch's kernels compute them. And by cubic filters whose scale may leave a size as it is:
onnxruntime (1.31) copies then, torch does not.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from entrepot.exporters.torch.translations.resizing import (
    ANTIALIASED,
    copies_nearest,
    may_copy,
    nearest_place,
    smoothed,
    step_of,
)

_Taps: TypeAlias = list[tuple[torch.Tensor, torch.Tensor | None]]
"""Indices along an axis, one per sample, and how much the elements count; all of it where that is ``None``."""

_NUMBERS_OF_SIZES = (torch.SymInt, torch.SymFloat)
_KEYS = -0.75
"""The parameter of the cubic filter of Keys that torch has."""


def _nearest(offset: float, count: Any, scale: Any, size: Any, rank: int) -> _Taps:
    return [(nearest_place(count, size, scale, offset=offset, copied=copies_nearest(rank, offset)), None)]


def _linear(count: Any, scale: Any, size: Any, rank: int) -> _Taps:
    """Each sample from the elements on both sides."""
    place = ((_places(count) + 0.5) * step_of(count, size, scale, copied=True) - 0.5).clamp(min=0)
    first = place.floor().clamp(max=size - 1)
    share = (place - first).clamp(max=1)
    return [(first.to(torch.int64), 1 - share), ((first + 1).clamp(max=size - 1).to(torch.int64), share)]


def _cubic(count: Any, scale: Any, size: Any, rank: int) -> _Taps:
    """Each sample from the two elements on each side."""
    place = (_places(count) + 0.5) * (1 / scale) - 0.5
    first = place.floor()
    share = (place - first).clamp(0, 1)
    weights = [_outer(share + 1), _inner(share), _inner(1 - share), _outer(2 - share)]
    return [((first + offset).clamp(0, size - 1).to(torch.int64), weight) for offset, weight in enumerate(weights, -1)]


def _inner(distance: torch.Tensor) -> torch.Tensor:
    """What counts of an element that is up to one away."""
    return ((_KEYS + 2) * distance - (_KEYS + 3)) * distance * distance + 1


def _outer(distance: torch.Tensor) -> torch.Tensor:
    """What counts of an element that is one to two away."""
    return ((_KEYS * distance - 5 * _KEYS) * distance + 8 * _KEYS) * distance - 4 * _KEYS


def _places(count: Any) -> torch.Tensor:
    return torch.arange(count, dtype=torch.float32)


_TAPS: dict[str, Callable[..., _Taps]] = {
    "nearest": functools.partial(_nearest, 0.0),
    "nearest-exact": functools.partial(_nearest, 0.5),
    **dict.fromkeys(("linear", "bilinear", "trilinear"), _linear),
    "bicubic": _cubic,
}


def _interpolate(
    input: torch.Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> torch.Tensor:
    plain = functools.partial(F.interpolate, input, mode=mode, align_corners=align_corners, antialias=antialias)
    scales = scale_factor if isinstance(scale_factor, Sequence) else [scale_factor] * (input.dim() - 2)
    fits = size is None and len(scales) == input.dim() - 2 and (input.is_floating_point() or "nearest" in mode)
    if not fits or not any(isinstance(scale, _NUMBERS_OF_SIZES) for scale in scales):
        return plain(size=size, scale_factor=scale_factor, recompute_scale_factor=recompute_scale_factor)
    counts = [math.floor(length * scale) for length, scale in zip(input.shape[2:], scales, strict=True)]
    filters = ANTIALIASED if antialias else _TAPS
    if recompute_scale_factor or align_corners or mode not in filters:  # those look at nothing but the sizes
        return plain(size=counts)
    if antialias:
        return smoothed(input, mode, counts, scales)
    return _picked(input, mode, counts, scales)


def _bicubic(
    input: torch.Tensor, output_size: Sequence[Any] | None, align_corners: bool, scale_factors: Sequence[float] | None
) -> Any:
    if align_corners or scale_factors is None or not input.is_floating_point():
        return NotImplemented
    counts = [math.floor(size * scale) for size, scale in zip(input.shape[2:], scale_factors, strict=True)]
    if not any(map(may_copy, input.shape[2:], counts, scale_factors)):
        return NotImplemented
    return _picked(input, "bicubic", counts, scale_factors)


def _picked(x: torch.Tensor, mode: str, counts: Sequence[Any], scales: Sequence[Any]) -> torch.Tensor:
    """The last axis first, as torch does it: sums are then rounded alike."""
    found = x
    for axis, (count, scale) in reversed(list(enumerate(zip(counts, scales, strict=True), 2))):
        found = _along(found, axis, _TAPS[mode](count, scale, x.shape[axis], len(counts)))
    return found


def _along(x: torch.Tensor, axis: int, taps: _Taps) -> torch.Tensor:
    parts = [_counted(x.index_select(axis, index), axis, weight) for index, weight in taps]
    return functools.reduce(torch.add, parts)


def _counted(elements: torch.Tensor, axis: int, weight: torch.Tensor | None) -> torch.Tensor:
    if weight is None:
        return elements
    return elements * weight.to(elements.dtype).reshape(-1, *[1] * (elements.dim() - axis - 1))


DECOMPOSITIONS = {torch.ops.aten.upsample_bicubic2d.vec: _bicubic}
REPLACEMENTS = {F.interpolate: _interpolate}
