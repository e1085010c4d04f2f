"""How often integers occur."""

from __future__ import annotations

import itertools

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal, share, whole

NOTHING = np.zeros(0, np.float32)
for binary, weighted in ((False, False), (True, False), (False, True)):
    flag = {"binary_output": binary}
    rows = {"indices": whole(0, 3, (7, 2), np.int64), "dense_shape": np.array([4, 9], np.int64)}
    weights = normal(7) if weighted else NOTHING
    add("SparseBincount", flag, closed="indices", **rows, values=whole(0, 8, 7), size=np.int32(6), weights=weights)
    line = {"indices": whole(0, 9, (7, 1), np.int64), "dense_shape": np.array([9], np.int64)}
    add("SparseBincount", flag, closed="indices", **line, values=whole(0, 8, 7), size=np.int32(9), weights=weights)
    splits = np.array([0, 3, 3, 7], np.int64)
    add("RaggedBincount", flag, splits=splits, values=whole(0, 8, 7), size=np.int32(6), weights=weights)
for shape, binary, weighted, most in itertools.product(((7,), (3, 5)), (False, True), (False, True), (-1, 5)):
    if not (binary and weighted):
        weights = share(*shape) if weighted else NOTHING
        how = {"binary_output": binary, "minlength": 3 if most == -1 else -1, "maxlength": most}
        add("DenseCountSparseOutput", how, tolerance=1e-5, values=whole(0, 8, shape), weights=weights)
add(
    "SetSize", {"validate_indices": False},
    set_indices=np.array([[0, 0], [0, 1], [0, 2], [2, 0], [2, 1]], np.int64), set_values=ints(3, 4, 3, 7, 7),
    set_shape=np.array([3, 4], np.int64),
)  # fmt: skip
for weighted, binary, most in ((False, False, -1), (True, False, -1), (False, True, -1), (False, False, 6)):
    how = {"binary_output": binary, "maxlength": most}
    weights = normal(5) if weighted else normal(0)
    add(
        "SparseCountSparseOutput", how, tolerance=1e-5, values=ints(2, 7, 2, 5, 2), weights=weights,
        indices=np.array([[0, 0], [0, 1], [0, 2], [2, 0], [2, 1]], np.int64), dense_shape=np.array([4, 3], np.int64),
    )  # fmt: skip
    add(
        "RaggedCountSparseOutput", how, tolerance=1e-5, values=ints(2, 7, 2, 5, 2), weights=weights,
        splits=np.array([0, 2, 2, 5], np.int64),
    )  # fmt: skip
for way in ("a-b", "b-a", "intersection", "union"):
    sparse = {
        "set2_indices": np.array([[0, 0], [0, 1], [0, 2], [2, 0], [2, 1]], np.int64),
        "set2_values": ints(1, 3, 4, 7, 9), "set2_shape": np.array([3, 4], np.int64),
    }  # fmt: skip
    add("DenseToSparseSetOperation", {"set_operation": way}, set1=ints([[3, 1, 3], [2, 2, 5], [9, 8, 7]]), **sparse)
    add(
        "SparseToSparseSetOperation", {"set_operation": way}, set1_values=ints(3, 5, 2, 9),
        set1_indices=np.array([[0, 0], [0, 1], [1, 0], [2, 2]], np.int64), set1_shape=np.array([3, 3], np.int64),
        **sparse,
    )  # fmt: skip
