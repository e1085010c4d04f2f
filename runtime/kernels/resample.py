"""Where each point of a resized axis reads its input, and with what weights: pure arithmetic on sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.axes import counted

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Singles: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class Span:
    """One axis and how it is resized.

    Attributes:
        source: Points the axis has.
        target: Points it gets.
        width: The target as a fraction of points, before it was rounded down; the scale is ``width / source``.
        start: First normalised coordinate of the region of interest.
        end: Last normalised coordinate of the region of interest.
        factor: The scale as it is given, in float32; 0 where sizes are given.
    """

    source: int
    target: int
    width: float
    start: float = 0.0
    end: float = 1.0
    factor: float = 0.0

    @property
    def scale(self) -> float:
        """Output points per input point."""
        return self.width / self.source

    @property
    def is_whole(self) -> bool:
        """Whether the axis stays as it is."""
        return self.source == self.target == self.width and (self.start, self.end) == (0.0, 1.0)


@dataclass(frozen=True)
class Sampling:
    """The attributes of Resize that say how a point is interpolated."""

    mode: str
    coordinates: str
    nearest: str = "round_prefer_floor"
    cubic_coeff_a: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False


class Taps(NamedTuple):
    """For each output point: input points, their weights (None: one point, weight 1), and whether it is outside."""

    indices: np.ndarray[Any, np.dtype[np.int64]]
    weights: Floats | None
    outside: np.ndarray[Any, np.dtype[np.bool_]] | None


def resized_spans(
    shape: Sequence[int],
    scales: np.ndarray[Any, Any] | None,
    sizes: np.ndarray[Any, Any] | None,
    roi: np.ndarray[Any, Any] | None,
    axes: Sequence[int] | None,
    policy: str,
) -> dict[int, Span]:
    """The axes that change, by number.

    Raises:
        InputError: Not exactly one of ``scales`` and ``sizes`` is given, or one does not fit the axes.
    """
    named = [counted(axis, len(shape)) for axis in axes] if axes is not None else list(range(len(shape)))
    given = [values for values in (scales, sizes) if values is not None]
    if len(given) != 1:
        raise InputError("Resize takes exactly one of scales and sizes")
    if len(given[0]) != len(named):
        raise InputError(f"Resize has {len(given[0])} scales or sizes for {len(named)} axes")
    regions = [(0.0, 1.0)] * len(named) if roi is None else list(zip(*np.split(roi.astype(float), 2), strict=True))
    sources = [shape[axis] for axis in named]
    if sizes is not None and (sizes < 0).any():
        raise InputError(f"Resize: a size is below 0 in {sizes.tolist()}")
    if scales is not None:
        made = [_scaled(source, scale, *region) for source, scale, region in zip(sources, scales, regions, strict=True)]
    else:
        made = _sized(sources, [int(size) for size in given[0]], regions, policy)
    changed = {axis: span for axis, span in zip(named, made, strict=True) if not span.is_whole}
    # axes that shrink first; then from the last one back, so that rows are copied whole once they are wide
    return dict(sorted(changed.items(), key=lambda item: (item[1].width / max(item[1].source, 1), -item[0])))


def _scaled(source: int, scale: np.floating[Any], start: float, end: float) -> Span:
    # in float32, as exporters and onnx's shape inference reckon: 10 * 0.7 must be 7
    width = np.float32(source) * np.float32(scale)
    return Span(source, math.floor(width * np.float32(end - start)), float(width), start, end, float(scale))


def _sized(
    sources: Sequence[int], sizes: Sequence[int], regions: Sequence[tuple[float, float]], policy: str
) -> list[Span]:
    if policy == "stretch":
        return [Span(source, size, size, *region) for source, size, region in zip(sources, sizes, regions, strict=True)]
    if policy not in ("not_larger", "not_smaller"):
        raise InputError(f"keep_aspect_ratio_policy is stretch, not_larger or not_smaller, not {policy!r}")
    ratios = [size / source for source, size in zip(sources, sizes, strict=True)]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [
        Span(source, math.floor(scale * source + 0.5), scale * source, *region)
        for source, region in zip(sources, regions, strict=True)
    ]


@lru_cache(maxsize=256)
def taps(span: Span, sampling: Sampling) -> Taps:
    """What each of the ``span.target`` output points reads; kept, so not to be written to."""
    at = _coordinates(span, sampling)
    outside = (at < 0) | (at > span.source - 1) if sampling.coordinates == "tf_crop_and_resize" else None
    if sampling.mode == "nearest":
        nearest = np.clip(_rounded(at, sampling.nearest), 0, span.source - 1)
        return Taps(nearest.astype(np.int64)[:, None], None, outside)
    indices, weights = _weighted(at, span, sampling)
    if sampling.exclude_outside:
        weights = np.where((indices >= 0) & (indices < span.source), weights, 0.0)
    weights = weights / weights.sum(axis=1, keepdims=True)
    return Taps(np.clip(indices, 0, span.source - 1), weights, outside)


def _coordinates(span: Span, sampling: Sampling) -> Floats:
    """Output points in the coordinates of the input."""
    mode = sampling.coordinates
    if mode not in _TRANSFORMATIONS:
        raise InputError(f"Resize has no coordinate_transformation_mode {mode!r}")
    if sampling.mode == "nearest" and span.factor and mode in _IN_SINGLE:
        return _IN_SINGLE[mode](span, np.arange(span.target, dtype=np.float32), np.float32(span.factor))
    return _TRANSFORMATIONS[mode](span, np.arange(span.target, dtype=np.float64))


def _symmetric(span: Span, x: Singles, scale: np.float32) -> Singles:
    adjustment = np.float32(span.target) / (scale * np.float32(span.source))
    offset = np.float32(span.source / 2) * (1 - adjustment)
    return offset + (x + np.float32(0.5)) / scale - np.float32(0.5)


def _centred(_: Span, x: Singles, scale: np.float32) -> Singles:
    return (x + np.float32(0.5)) / scale - np.float32(0.5)


_IN_SINGLE: dict[str, Callable[[Span, Singles, np.float32], Singles]] = {
    "half_pixel": _centred,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda span, x, scale: _centred(span, x, scale) if span.target > 1 else x,
    "asymmetric": lambda _, x, scale: x / scale,
    "tf_half_pixel_for_nn": lambda _, x, scale: (x + np.float32(0.5)) / scale,
}
"""Coordinates whose nearest point is asked for, rounded as the scale is, in float32: 2 / 0.6666667 must be 3.

onnxruntime and the frameworks reckon so; the exact quotient of a rounded scale is often just below the point meant.
"""


# multiply before dividing: the quotient is then exact where it can be


def _half_pixel(span: Span, x: Floats) -> Floats:
    return (x + 0.5) * span.source / span.width - 0.5


def _half_pixel_symmetric(span: Span, x: Floats) -> Floats:
    return span.source / 2 * (1 - span.target / span.width) + _half_pixel(span, x)


def _align_corners(span: Span, x: Floats) -> Floats:
    return x * (span.source - 1) / (span.width - 1) if span.width != 1 else x * 0


def _crop(span: Span, x: Floats) -> Floats:
    last = span.source - 1
    if span.target == 1:
        return x + 0.5 * (span.start + span.end) * last
    return span.start * last + x * (span.end - span.start) * last / (span.target - 1)


_TRANSFORMATIONS: dict[str, Callable[[Span, Floats], Floats]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": lambda span, x: _half_pixel(span, x) if span.target > 1 else x,
    "align_corners": _align_corners,
    "asymmetric": lambda span, x: x * span.source / span.width,
    "tf_crop_and_resize": _crop,
    "tf_half_pixel_for_nn": lambda span, x: (x + 0.5) * span.source / span.width,  # of version 11, and still written
}


def _rounded(at: Floats, mode: str) -> Floats:
    match mode:
        case "round_prefer_floor":
            return np.ceil(at - 0.5)
        case "round_prefer_ceil":
            return np.floor(at + 0.5)
        case "floor":
            return np.floor(at)
        case "ceil":
            return np.ceil(at)
    raise InputError(f"Resize has no nearest_mode {mode!r}")


def _weighted(at: Floats, span: Span, sampling: Sampling) -> tuple[np.ndarray[Any, Any], Floats]:
    """Input points around each coordinate, and the kernel at their distance, stretched when antialiasing."""
    shrink = min(span.scale, 1.0) if sampling.antialias else 1.0
    reach = {"linear": 1, "cubic": 2}.get(sampling.mode)
    if reach is None:
        raise InputError(f"Resize has no mode {sampling.mode!r}")
    first = math.floor(-reach / shrink) + 1
    base = np.floor(at)
    offsets = np.arange(first, 2 - first)
    distance = (offsets - (at - base)[:, None]) * shrink
    kernel = _triangle(distance) if reach == 1 else _cubic(distance, sampling.cubic_coeff_a)
    return base.astype(np.int64)[:, None] + offsets, kernel


def _triangle(distance: Floats) -> Floats:
    return np.clip(1 - np.abs(distance), 0, None)


def _cubic(distance: Floats, a: float) -> Floats:
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))
