"""Operators that rewriters of graphs leave behind."""

from __future__ import annotations

import itertools

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal

# one image: of a batch, TensorFlow (2.21) convolves all but the first one wrongly, with itself as the judge
_AROUND = np.array([[0, 0], [1, 2], [2, 1], [0, 0]], np.int32)
for mode, padding, stride in itertools.product(("REFLECT", "SYMMETRIC"), ("SAME", "VALID"), (1, 2)):
    add(
        "FusedPadConv2D", {"mode": mode, "strides": [1, stride, stride, 1], "padding": padding}, "filter paddings",
        tolerance=1e-4, input=normal(1, 6, 7, 3), paddings=_AROUND, filter=normal(3, 2, 3, 4),
    )  # fmt: skip
    add(
        "FusedResizeAndPadConv2D",
        {"mode": mode, "strides": [1, stride, stride, 1], "padding": padding, "resize_align_corners": stride == 2},
        "filter paddings size", tolerance=1e-4,
        input=normal(1, 6, 7, 3), size=ints(9, 5), paddings=_AROUND, filter=normal(3, 2, 3, 4),
    )  # fmt: skip
add("ApproxTopK", {"k": 2}, input=normal(4, 5, 6))
add("ApproxTopK", {"k": 3, "reduction_dimension": -1}, input=normal(7))
for count in (1, 3, 9):
    add("NearestNeighbors", tolerance=1e-4, points=normal(5, 3), centers=normal(7, 3), k=np.array(count, np.int64))
