from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.op_cases.case import Case, bf16, f16, f32, f64, floats, i8, i32, ints, u8

X = f32(1, 2, 5, 6)
MODES = ("nearest", "linear", "cubic")
COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")


def by_size(x: Any, *sizes: int, **attributes: Any) -> Case:
    return Case("Resize", x, None, None, ints(*sizes), **attributes)


def by_scale(x: Any, *scales: float, **attributes: Any) -> Case:
    return Case("Resize", x, None, floats(*scales), **attributes)


RESIZE = [
    *(by_scale(X, 1, 1, 2, 3, mode=mode) for mode in MODES),
    *(by_scale(X, 1, 1, 0.6, 0.5, mode=mode) for mode in MODES),
    *(by_size(X, 1, 2, 8, 9, mode=mode) for mode in MODES),
    *(by_size(X, 1, 2, 3, 4, mode=mode) for mode in MODES),
    *(by_size(X, 1, 2, 9, 4, mode=mode, coordinate_transformation_mode=how) for mode in MODES for how in COORDINATES),
    *(
        by_size(X, 1, 2, 9, 4, coordinate_transformation_mode=how, nearest_mode=rounding)
        for how in ("half_pixel", "asymmetric")
        for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    ),
    *(
        case.held_to("onnxruntime", why="onnx.reference knows no coordinates of version 11 that the text no longer has")
        for case in (
            by_size(X, 1, 2, 9, 4, coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="floor"),
            by_scale(X, 1, 1, 2, 0.7, coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="floor"),
            by_size(X, 1, 2, 7, 9, coordinate_transformation_mode="tf_half_pixel_for_nn", mode="linear"),
        )
    ),
    by_scale(X, 2, 2, axes=[2, 3], mode="linear"),
    by_size(X, 9, 8, axes=[3, 2], mode="linear"),
    by_size(X, 7, 8, axes=[2, 3], keep_aspect_ratio_policy="not_larger"),
    by_size(X, 7, 8, axes=[2, 3], keep_aspect_ratio_policy="not_smaller"),
    by_size(X, 1, 2, 8, 9, mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1),
    by_size(X, 1, 2, 3, 3, mode="linear", antialias=1),
    by_size(X, 1, 2, 3, 3, mode="cubic", antialias=1, exclude_outside=1),
    Case("Resize", X, floats(0, 0, 0.2, -0.2, 1, 1, 1.1, 0.8), None, ints(1, 2, 6, 7), mode="linear",
         coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=9.0),
    by_size(f32(2, 3, 7), 2, 3, 5, mode="linear"),
    by_size(f32(1, 1, 3, 4, 5), 1, 1, 5, 6, 7, mode="linear"),
    by_size(f64(1, 2, 5, 6), 1, 2, 8, 9, mode="linear"),
    *(by_size(make(1, 2, 5, 6), 1, 2, 8, 9) for make in (u8, i8, i32, f16, bf16, f64)),
    by_size(f16(1, 2, 5, 6), 1, 2, 8, 9, mode="linear"),
    by_size(u8(1, 2, 5, 6, high=255), 1, 2, 8, 9, mode="cubic"),
    Case("Resize", np.arange(3, dtype=ml_dtypes.bfloat16), None, floats(2)).giving(
        np.array([0, 0, 1, 1, 2, 2], ml_dtypes.bfloat16)
    ),
    by_size(f32(0, 2, 5, 6), 0, 2, 8, 9, axes=[0, 1, 2, 3]).giving(np.zeros((0, 2, 8, 9), np.float32)),
    by_size(X, 1, 2, 5, 6, mode="linear"),
]  # fmt: skip


CLAMPED = "onnx.reference clamps the coordinate too, PyTorch and onnxruntime only the points read"


def sampled(**attributes: Any) -> Case:
    return Case("GridSample", X, f32(1, 4, 3, 2, low=-1.4, high=1.4), **attributes)


IDENTITY = floats(-0.5, -0.5, 0.5, -0.5, -0.5, 0.5, 0.5, 0.5).reshape(1, 2, 2, 2)
SAMPLE = [
    *(
        sampled(mode=mode, padding_mode=padding, align_corners=align)
        for mode in MODES
        for padding in ("zeros", "border", "reflection")
        for align in (0, 1)
        if (mode, padding) != ("cubic", "border")
    ),
    *(
        sampled(mode="cubic", padding_mode="border", align_corners=align).held_to("onnxruntime", why=CLAMPED)
        for align in (0, 1)
    ),
    Case("GridSample", f32(2, 2, 3, 4, 5), f32(2, 2, 3, 2, 3, low=-1.2, high=1.2)),
    Case("GridSample", f32(1, 2, 3, 4, 5), f32(1, 2, 3, 2, 3, low=-1.2, high=1.2), mode="nearest"),
    Case("GridSample", f64(1, 2, 5, 6), f64(1, 4, 3, 2)).computed_in(
        np.float32, why="onnx.reference has its coordinates in float32"
    ),
    Case("GridSample", f16(1, 2, 5, 6), f16(1, 4, 3, 2)),
    Case("GridSample", i32(1, 2, 5, 6), f32(1, 4, 3, 2), mode="nearest", padding_mode="border"),
    Case("GridSample", f32(0, 2, 5, 6), f32(0, 4, 3, 2)).giving(np.zeros((0, 2, 4, 3), np.float32)),
    *(Case("AffineGrid", f32(2, 2, 3), ints(2, 3, 4, 5), align_corners=align) for align in (0, 1)),
    *(Case("AffineGrid", f32(2, 3, 4), ints(2, 3, 4, 5, 2), align_corners=align) for align in (0, 1)),
    *(
        Case("AffineGrid", np.eye(2, 3, dtype=dtype)[None], ints(1, 1, 2, 2)).giving(IDENTITY.astype(dtype))
        for dtype in (np.float64, np.float16, ml_dtypes.bfloat16)  # onnx.reference makes them float32
    ),
]

CASES = [*RESIZE, *SAMPLE]
