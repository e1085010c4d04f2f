"""Boxes of many classes, and windows of images."""

from __future__ import annotations

import itertools

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal, share

_CORNER = share(2, 12, 3, 2) * 0.8
for own, pads, clips in itertools.product((True, False), (True, False), (True, False)):
    boxes = np.concatenate([_CORNER, _CORNER + 0.1 + 0.3 * share(2, 12, 3, 2)], -1)
    for total, least in ((5, 0.4), (30, 0.1)):
        add(
            "CombinedNonMaxSuppression", {"pad_per_class": pads, "clip_boxes": clips}, closed="boxes",
            boxes=boxes if own else boxes[:, :, :1], scores=share(2, 12, 3), max_output_size_per_class=np.int32(4),
            max_total_size=np.int32(total), iou_threshold=np.float32(0.3), score_threshold=np.float32(least),
        )  # fmt: skip
_OVERLAPS = share(9, 9)
for most, least in ((3, 0.2), (9, 0.0)):
    add(
        "NonMaxSuppressionWithOverlaps", overlaps=(_OVERLAPS + _OVERLAPS.T) / 2, scores=share(9),
        max_output_size=np.int32(most), overlap_threshold=np.float32(0.5), score_threshold=np.float32(least),
    )  # fmt: skip
for centred, normalised in itertools.product((True, False), (True, False)):
    for op, name in (("ExtractGlimpse", "input"), ("ExtractGlimpseV2", "input")):
        places = np.array([[0.3, -0.2], [0.6, 0.9]], np.float32) * (1 if normalised else 3)
        add(
            op, {"centered": centred, "normalized": normalised, "uniform_noise": False, "noise": "zero"},
            **{name: normal(2, 7, 8, 3)}, size=ints(4, 3), offsets=places,
        )  # fmt: skip
_CORNERS = share(9, 2) * 4
_BOXES = np.concatenate([_CORNERS, _CORNERS + share(9, 2) * 3 + 0.5], 1)
for sigma, padded, overlap in itertools.product((0.4, 1.5), (True, False), (0.3, 1.0)):
    add(
        "NonMaxSuppressionV5", {"pad_to_max_output_size": padded}, tolerance=1e-5, boxes=_BOXES, scores=share(9),
        max_output_size=np.int32(6), iou_threshold=np.float32(overlap), score_threshold=np.float32(0.2),
        soft_nms_sigma=np.float32(sigma),
    )  # fmt: skip
