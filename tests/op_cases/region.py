from __future__ import annotations

import numpy as np

from tests.op_cases.case import Case, f16, f32, f64, floats, ints

ROIS = floats(0, 0, 6, 6, 1.5, 2, 7.5, 5, -1, -2, 3, 4, 2, 2, 2, 2).reshape(4, 4)
IMAGES = ints(0, 1, 1, 0)
BOXES = f32(2, 12, 4, low=0, high=1)
SCORES = f32(2, 3, 12, low=0, high=1)
FIVE, OVERLAP, FLOOR = np.array([5]), floats(0.3), floats(0.2)
RAMP = np.arange(36, dtype=np.float32).reshape(1, 1, 6, 6)

CASES = [
    Case("RoiAlign", f32(2, 3, 8, 9), ROIS, IMAGES, output_height=2, output_width=3, sampling_ratio=2),
    Case("RoiAlign", f32(2, 3, 8, 9), ROIS, IMAGES, output_height=2, output_width=3, spatial_scale=0.7,
         coordinate_transformation_mode="output_half_pixel"),
    Case("RoiAlign", f32(2, 3, 8, 9), ROIS[:3], IMAGES[:3], output_height=2, output_width=2),
    Case("RoiAlign", f32(2, 3, 8, 9), ROIS[:3], IMAGES[:3], output_height=2, output_width=2, mode="max",
         sampling_ratio=2),
    Case("RoiAlign", f32(2, 3, 8, 9), ROIS[:0], IMAGES[:0]).giving(np.zeros((0, 3, 1, 1), np.float32)),
    Case("RoiAlign", f64(2, 3, 8, 9), ROIS.astype(np.float64), IMAGES, sampling_ratio=2),
    Case("RoiAlign", f16(2, 3, 8, 9), ROIS.astype(np.float16), IMAGES, sampling_ratio=2),
    # no oracle has this version: the largest of a ramp is at each bin's last row and column
    Case("MaxRoiPool", RAMP, floats(0, 0, 0, 4, 4).reshape(1, 5), pooled_shape=[2, 2]).giving(
        floats(14, 16, 26, 28).reshape(1, 1, 2, 2)
    ),
    Case("MaxRoiPool", RAMP, floats(0, 2, 2, 10, 10).reshape(1, 5), pooled_shape=[2, 2], spatial_scale=0.5).giving(
        floats(21, 23, 33, 35).reshape(1, 1, 2, 2)
    ),
    Case("NonMaxSuppression", BOXES, SCORES, FIVE, OVERLAP, FLOOR),
    Case("NonMaxSuppression", BOXES, SCORES, FIVE, OVERLAP),
    Case("NonMaxSuppression", BOXES, SCORES, FIVE),
    Case("NonMaxSuppression", BOXES, SCORES, FIVE, OVERLAP, FLOOR, center_point_box=1),
    Case("NonMaxSuppression", BOXES, SCORES).giving(np.zeros((0, 3), np.int64)),
    Case("NonMaxSuppression", f32(1, 0, 4), f32(1, 2, 0), FIVE).giving(np.zeros((0, 3), np.int64)),
]  # fmt: skip
