"""Layers that are another form of others, and what is looked up while a graph is written."""

from __future__ import annotations

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal

for padding in ("SAME", "VALID"):
    add(
        "Conv", {"strides": [1, 2, 2, 1], "padding": padding}, tolerance=1e-5, closed="input filter",
        input=normal(2, 7, 8, 3), filter=normal(3, 2, 3, 4),
    )  # fmt: skip
    add(
        "Conv", {"strides": [1, 1, 1, 1, 1], "padding": padding}, tolerance=1e-5, closed="input filter",
        input=normal(2, 4, 5, 6, 3), filter=normal(2, 3, 2, 3, 4),
    )  # fmt: skip
add("UnicodeScript", input=ints([[65, 0x4E00, 0x3B1], [0x10FFFF, -1, 0x110000]]))
add(
    "SobolSample", {"dtype": "float32"}, "dim num_results skip", dim=np.int32(3), num_results=np.int32(5),
    skip=np.int32(2),
)  # fmt: skip
add(
    "ComputeAccidentalHits", {"num_true": 2}, true_classes=np.array([[1, 2], [3, 1], [9, 5]], np.int64),
    sampled_candidates=np.array([3, 5, 1, 3], np.int64),
)  # fmt: skip
add("IsotonicRegression", tolerance=1e-5, input=normal(4, 7))
for values in ((0, 0, 2), (), (3,), (0, 1, 2, 3)):
    add(
        "RaggedFillEmptyRows", value_rowids=np.array(values, np.int64), values=normal(len(values)), nrows=np.int64(4),
        default_value=np.float32(9),
    )  # fmt: skip
add("RaggedFillEmptyRowsGrad", tolerance=1e-5, reverse_index_map=np.array([0, 1, 3], np.int64), grad_values=normal(5))
