"""Operators of detectors: regions of interest, suppression of overlapping boxes, deformed windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime import room
from entrepot.runtime.kernels.pooling import lowest
from entrepot.runtime.kernels.precision import accumulation_dtype
from entrepot.runtime.providers.cpu.table import native

Array: TypeAlias = np.ndarray[Any, Any]


@native("RoiAlign", 22)
def roi_align(
    X: Array,
    rois: Array,
    batch_indices: Array,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Array:
    """Bilinear samples on a regular grid in each bin of each region, averaged, or their maximum."""
    if mode not in ("avg", "max"):
        raise InputError(f"RoiAlign has no mode {mode!r}")
    if coordinate_transformation_mode not in ("half_pixel", "output_half_pixel"):
        raise InputError(f"RoiAlign has no coordinate_transformation_mode {coordinate_transformation_mode!r}")
    half_pixel = coordinate_transformation_mode == "half_pixel"
    x = X.astype(accumulation_dtype(X.dtype), copy=False)
    boxes = rois.astype(np.float64) * spatial_scale - (0.5 if half_pixel else 0.0)
    y = room.zeros((len(boxes), X.shape[1], output_height, output_width), x.dtype)
    for n, (x0, y0, x1, y1) in enumerate(boxes):
        smallest = -math.inf if half_pixel else 1.0
        rows = _samples(y0, max(y1 - y0, smallest), output_height, sampling_ratio)
        columns = _samples(x0, max(x1 - x0, smallest), output_width, sampling_ratio)
        if rows.size and columns.size:
            y[n] = _pooled_samples(x[int(batch_indices[n])], rows, columns, mode)
    return y.astype(X.dtype, copy=False)


def _samples(start: float, length: float, bins: int, ratio: int) -> Array:
    """(bins, samples per bin): coordinates at the centres of equal parts of each bin."""
    count = ratio if ratio > 0 else max(math.ceil(length / bins), 0)
    room.claim((bins, count))
    parts = np.arange(count) + 0.5
    return start + (np.arange(bins)[:, None] + parts / max(count, 1)) * (length / bins)


def _pooled_samples(image: Array, rows: Array, columns: Array, mode: str) -> Array:
    """(channels, bins, bins) of one region."""
    row_taps = _linear_taps(rows, image.shape[1])
    column_taps = _linear_taps(columns, image.shape[2])
    parts = []
    for row, row_weight in row_taps:
        for column, column_weight in column_taps:
            weight = row_weight[:, :, None, None] * column_weight
            parts.append(image[:, row[:, :, None, None], column] * weight.astype(image.dtype))
    if mode == "max":  # over the weighted corners, as the operator has always been computed
        return np.maximum.reduce(parts).max(axis=(2, 4))
    return np.add.reduce(parts).mean(axis=(2, 4))


def _linear_taps(at: Array, size: int) -> list[tuple[Array, Array]]:
    """The two neighbours of each coordinate and their weights; beyond one pixel outside, nothing counts."""
    counts = (at >= -1.0) & (at <= size)
    at = np.clip(at, 0, size - 1)
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, size - 1)
    return [(low, (1 - (at - low)) * counts), (high, (at - low) * counts)]


@native("MaxRoiPool", 22)
def max_roi_pool(X: Array, rois: Array, *, pooled_shape: Sequence[int], spatial_scale: float = 1.0) -> Array:
    """The maximum of each bin of each region, whose borders are rounded to whole pixels; an empty bin gives 0."""
    height, width = pooled_shape
    y = room.zeros((len(rois), X.shape[1], height, width), X.dtype)
    for n, roi in enumerate(rois.astype(np.float64)):
        x0, y0, x1, y1 = np.floor(roi[1:] * spatial_scale + 0.5).astype(np.int64)
        image = X[int(roi[0])]
        rows = _bins(y0, max(y1 - y0 + 1, 1), height, image.shape[1])
        columns = _bins(x0, max(x1 - x0 + 1, 1), width, image.shape[2])
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                part = image[:, row, column]
                if part.size:
                    y[n, :, i, j] = part.max(axis=(1, 2), initial=lowest(X.dtype))
    return y


def _bins(start: int, length: int, bins: int, size: int) -> list[slice]:
    step = length / bins
    borders = [(math.floor(i * step) + start, math.ceil((i + 1) * step) + start) for i in range(bins)]
    return [slice(min(max(low, 0), size), min(max(high, 0), size)) for low, high in borders]


@native("NonMaxSuppression", 11)
def non_max_suppression(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array | None = None,
    iou_threshold: Array | None = None,
    score_threshold: Array | None = None,
    *,
    center_point_box: int = 0,
) -> Array:
    """(batch, class, box) of the best boxes of each class, none of which overlaps a better one too much."""
    most = 0 if max_output_boxes_per_class is None else int(max_output_boxes_per_class.item())
    overlap = 0.0 if iou_threshold is None else float(iou_threshold.item())
    floor = None if score_threshold is None else score_threshold.reshape(())
    if boxes.shape != (scores.shape[0], scores.shape[-1], 4) or scores.ndim != 3:
        raise InputError(f"NonMaxSuppression: boxes of shape {boxes.shape} for scores of shape {scores.shape}")
    selected: list[tuple[int, int, int]] = []
    for batch in range(scores.shape[0]):
        corners = _corners(boxes[batch], center_point_box)
        for kind in range(scores.shape[1]):
            keep = _suppressed(corners, scores[batch, kind], most, overlap, floor)
            selected.extend((batch, kind, index) for index in keep)
    return np.array(selected, np.int64).reshape(-1, 3)


def _corners(boxes: Array, center_point_box: int) -> Array:
    """(low, low, high, high) of each box."""
    if center_point_box:
        half = boxes[:, 2:] / 2
        return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)
    first, second = boxes[:, :2], boxes[:, 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=1)


def _suppressed(corners: Array, scores: Array, most: int, overlap: float, floor: Array | None) -> list[int]:
    by_place = np.argsort(corners[:, 0], kind="stable")
    boxes = _Boxes(*np.ascontiguousarray(corners[by_place].T))
    place = np.empty_like(by_place)
    place[by_place] = np.arange(by_place.size)
    order = np.argsort(-scores, kind="stable")
    if floor is not None:
        order = order[scores[order] > floor]
    left = np.ones(by_place.size, np.bool_)
    keep: list[int] = []
    apart = overlap >= 0 and not np.isnan(corners).any()  # what does not touch a box is not suppressed by it
    for index in order.tolist():
        if len(keep) >= most:
            break
        best = int(place[index])
        if left[best]:
            keep.append(index)
            near = boxes.near(best) if apart else slice(None)
            left[near] &= boxes.iou(best, near) <= overlap
    return keep


class _Boxes:
    """Boxes by where they begin along the first axis, so that those that reach another one lie in a row.

    Args:
        top: Where they begin, in order.
        start: Where they begin along the second axis.
        bottom: Where they end along the first one.
        end: Where they end along the second one.
    """

    def __init__(self, top: Array, start: Array, bottom: Array, end: Array) -> None:
        self._top, self._start, self._bottom, self._end = top, start, bottom, end
        self._areas = (bottom - top) * (end - start)
        self._reached = np.maximum.accumulate(bottom)

    def near(self, best: int) -> slice:
        """All that overlap a box, among others, and itself."""
        first = np.searchsorted(self._reached, self._top[best], side="left")
        return slice(int(first), int(np.searchsorted(self._top, self._bottom[best], side="right")))

    def iou(self, best: int, near: slice) -> Array:
        """What a box shares with others, of what both cover."""
        height = np.minimum(self._bottom[best], self._bottom[near]) - np.maximum(self._top[best], self._top[near])
        width = np.minimum(self._end[best], self._end[near]) - np.maximum(self._start[best], self._start[near])
        shared = height.clip(0) * width.clip(0)
        union = self._areas[best] + self._areas[near] - shared
        result: Array = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
        return result
