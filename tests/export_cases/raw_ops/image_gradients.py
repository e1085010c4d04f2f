"""Gradients of what is linear in an image."""

from __future__ import annotations

import itertools

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal, share, whole

for (corners, centres), sizes in itertools.product(
    ((False, False), (True, False), (False, True)), ((3, 9), (8, 4), (5, 6))
):
    how = {"align_corners": corners, "half_pixel_centers": centres}
    for op in ("ResizeBilinearGrad", "ResizeBicubicGrad"):
        add(op, how, tolerance=1e-5, grads=normal(2, *sizes, 3), original_image=normal(2, 5, 6, 3))
    for known in ("", "size"):
        add("ResizeNearestNeighborGrad", how, known, tolerance=1e-5, grads=normal(2, *sizes, 3), size=ints(5, 6))
for mode, rank in itertools.product(("REFLECT", "SYMMETRIC"), (1, 2, 3)):
    around = np.array([[1, 2], [0, 1], [2, 2]], np.int32)[:rank]
    add("MirrorPadGrad", {"mode": mode}, "paddings", tolerance=1e-5, input=normal(*(8, 7, 9)[:rank]), paddings=around)
for radius, beta in itertools.product((1, 2, 5), (0.5, 0.75)):
    images = {"input_image": normal(2, 3, 4, 7), "input_grads": normal(2, 3, 4, 7)}
    norm = 1.2 + 0.3 * sum(
        np.pad(images["input_image"] ** 2, ((0, 0),) * 3 + ((radius, radius),))[..., at : at + 7]
        for at in range(2 * radius + 1)
    )
    add(
        "LRNGrad", {"depth_radius": radius, "bias": 1.2, "alpha": 0.3, "beta": beta}, tolerance=1e-4,
        **images, output_image=(images["input_image"] * norm**-beta).astype(np.float32),
    )  # fmt: skip
for method, size in itertools.product(("bilinear", "nearest"), ((3, 4), (1, 2), (6, 1))):
    boxes = np.concatenate([share(4, 2) * 0.5 - 0.1, share(4, 2) * 0.5 + 0.6], 1)
    add(
        "CropAndResizeGradImage", {"method": method, "T": "float32"}, tolerance=1e-4,
        grads=normal(4, *size, 2), boxes=boxes, box_ind=whole(0, 2, 4), image_size=ints(2, 5, 6, 2),
    )  # fmt: skip
for size in ((3, 4), (1, 3)):
    add(
        "CropAndResizeGradBoxes", tolerance=1e-4, grads=normal(4, *size, 2), image=normal(2, 5, 6, 2),
        boxes=share(4, 4) * 1.2 - 0.1, box_ind=whole(0, 2, 4),
    )  # fmt: skip
for kernel, smooth in itertools.product(("lanczos3", "triangle", "keyscubic", "box"), (True, False)):
    add(
        "ScaleAndTranslateGrad", {"kernel_type": kernel, "antialias": smooth}, tolerance=1e-4,
        grads=normal(2, 4, 9, 3), original_image=normal(2, 7, 6, 3), scale=np.float32([0.6, 1.4]),
        translation=np.float32([0.3, -0.5]),
    )  # fmt: skip
