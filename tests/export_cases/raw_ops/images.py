"""Images."""

from __future__ import annotations

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal, share, whole


def im(*s):
    return abs(normal(*s))


for al, hp in ((False, False), (True, False), (False, True)):
    for sz in ((7, 9), (3, 2), (5, 6), (1, 11), (10, 12)):
        for op in ("ResizeNearestNeighbor", "ResizeBilinear", "ResizeBicubic", "ResizeArea"):
            if op == "ResizeArea" and hp:
                continue
            at = {"align_corners": al}
            if op != "ResizeArea":
                at["half_pixel_centers"] = hp
            add(op, at, "size", tolerance=3e-5, images=im(2, 5, 6, 3), size=ints(*sz))
        add(
            "ResizeBilinear",
            {"align_corners": al, "half_pixel_centers": hp},
            tolerance=1e-5,
            images=whole(0, 255, (2, 5, 6, 3), dtype="uint8"),
            size=ints(*sz),
        )
        add(
            "ResizeNearestNeighbor",
            {"align_corners": al, "half_pixel_centers": hp},
            images=whole(0, 255, (2, 5, 6, 3), dtype="uint8"),
            size=ints(*sz),
        )
for k in ["lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"]:
    for aa in (True, False):
        for sz in ((7, 9), (3, 2)):
            add(
                "ScaleAndTranslate",
                {"kernel_type": k, "antialias": aa},
                "size",
                tolerance=1e-3,
                images=im(2, 5, 6, 3),
                size=ints(*sz),
                scale=np.array([sz[0] / 5, sz[1] / 6], "f4"),
                translation=np.array([0, 0.5], "f4"),
            )
for op in ("RGBToHSV", "HSVToRGB"):
    add(op, tolerance=1e-5, images=share(2, 4, 5, 3))
add("RGBToHSV", tolerance=1e-5, images=np.array([[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.2], [1, 0, 0]], "f4"))
add("AdjustSaturation", tolerance=1e-4, images=share(2, 4, 5, 3), scale=np.float32(1.7))
add("AdjustHue", tolerance=1e-4, images=share(2, 4, 5, 3), delta=np.float32(0.3))
add("AdjustHue", tolerance=1e-4, images=share(2, 4, 5, 3), delta=np.float32(-0.6))
add("AdjustContrastv2", tolerance=1e-4, images=share(2, 4, 5, 3), contrast_factor=np.float32(1.7))
bx = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.8, 0.9], [-0.3, 0.2, 1.2, 0.5], [0.9, 0.8, 0.1, 0.2]], "f4")
for m in ("bilinear", "nearest"):
    for sz in ((3, 4), (1, 5)):
        add(
            "CropAndResize",
            {"method": m, "extrapolation_value": 0.7},
            "crop_size",
            tolerance=1e-4,
            image=normal(2, 5, 6, 3),
            boxes=bx,
            box_ind=ints(0, 1, 1, 0),
            crop_size=ints(*sz),
        )
add(
    "CropAndResize",
    tolerance=1e-4,
    image=whole(0, 255, (2, 5, 6, 3), dtype="uint8"),
    boxes=bx,
    box_ind=ints(0, 1, 1, 0),
    crop_size=ints(3, 4),
)
tr = np.array([[1, 0.2, -1, 0.1, 0.9, 0.5, 0, 0], [0.8, -0.2, 2, 0.1, 1.2, -3, 0.01, 0.02]], "f4")
for m in ("NEAREST", "BILINEAR"):
    for fm in ["CONSTANT", "REFLECT", "WRAP", "NEAREST"]:
        add(
            "ImageProjectiveTransformV3",
            {"interpolation": m, "fill_mode": fm},
            tolerance=1e-3,
            images=im(2, 5, 6, 3),
            transforms=tr,
            output_shape=ints(7, 5),
            fill_value=np.float32(0.5),
        )
add(
    "ImageProjectiveTransformV2",
    {"interpolation": "BILINEAR"},
    tolerance=1e-3,
    images=im(2, 5, 6, 3),
    transforms=tr,
    output_shape=ints(5, 6),
)
B = share(20, 2)
B = np.concatenate([B, B + share(20, 2) * 0.5], 1)
S = share(20)
add("NonMaxSuppression", {"iou_threshold": 0.3}, boxes=B, scores=S, max_output_size=np.int32(7))
add("NonMaxSuppressionV2", boxes=B, scores=S, max_output_size=np.int32(7), iou_threshold=np.float32(0.3))
add(
    "NonMaxSuppressionV3",
    boxes=B,
    scores=S,
    max_output_size=np.int32(30),
    iou_threshold=np.float32(0.3),
    score_threshold=np.float32(0.4),
)
add(
    "NonMaxSuppressionV4",
    {"pad_to_max_output_size": True},
    boxes=B,
    scores=S,
    max_output_size=np.int32(30),
    iou_threshold=np.float32(0.3),
    score_threshold=np.float32(0.4),
)
add(
    "NonMaxSuppressionV5",
    {"pad_to_max_output_size": True},
    "soft_nms_sigma",
    boxes=B,
    scores=S,
    max_output_size=np.int32(30),
    iou_threshold=np.float32(0.3),
    score_threshold=np.float32(0.4),
    soft_nms_sigma=np.float32(0),
)
add("DrawBoundingBoxesV2", images=im(2, 9, 8, 3), boxes=np.stack([bx, bx * 0.7]), colors=normal(2, 3))
add("DrawBoundingBoxes", images=im(2, 9, 8, 3), boxes=np.stack([bx[:2], bx[:2] * 0.7]))
