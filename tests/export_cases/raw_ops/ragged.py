"""Rows of different lengths."""

from __future__ import annotations

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal

SPLITS = np.array([0, 3, 3, 7, 8])
for shape in (ints(-1, -1), ints(5, 2), ints(2, 6)):
    attributes = {"row_partition_types": ["ROW_SPLITS"]}
    add(
        "RaggedTensorToTensor", attributes, "shape", shape=shape, values=normal(8), default_value=np.float32(7),
        row_partition_tensors=[SPLITS],
    )  # fmt: skip
add(
    "RaggedTensorToTensor", {"row_partition_types": ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]}, "shape",
    shape=ints(-1, -1, 2), values=normal(5, 2), default_value=np.float32(0),
    row_partition_tensors=[np.array(4), np.array([0, 0, 2, 2, 2])],
)  # fmt: skip
add("RaggedRange", starts=ints(0, 5, 8), limits=ints(3, 5, 2), deltas=ints(1, 1, -4))
add("RaggedRange", starts=np.array([1, 7]), limits=np.array([10, 0]), deltas=np.array([4, -3]))

OUTER, INNER = np.array([0, 2, 2, 3]), np.array([0, 3, 3, 5])
ROWS = [np.array(4), np.array([0, 2, 2]), np.array([0, 0, 1, 1, 1])]
for shape in (ints(-1)[0], ints(-1, 4, 2), ints(2, -1, -1)):
    for kinds, rows in ((["ROW_SPLITS"] * 2, [OUTER, INNER]), (["FIRST_DIM_SIZE", *["VALUE_ROWIDS"] * 2], ROWS)):
        add(
            "RaggedTensorToTensor", {"row_partition_types": kinds}, "shape", shape=shape, values=normal(5),
            default_value=np.float32(7), row_partition_tensors=rows,
        )  # fmt: skip
add(
    "RaggedTensorToTensor", {"row_partition_types": ["ROW_SPLITS"] * 2}, "shape", shape=ints(-1, -1, -1, 2),
    values=normal(5, 2), default_value=np.float32(0), row_partition_tensors=[OUTER, INNER],
)  # fmt: skip
add("RaggedTensorToSparse", rt_nested_splits=[SPLITS], rt_dense_values=normal(8))
add("RaggedTensorToSparse", rt_nested_splits=[OUTER, INNER], rt_dense_values=normal(5))
add("RaggedTensorToSparse", rt_nested_splits=[SPLITS], rt_dense_values=normal(8, 2, 3))
for indices in (ints(2, 0, 1, 2), ints([[1, 3], [0, 0]])):
    add(
        "RaggedGather", {"OUTPUT_RAGGED_RANK": indices.ndim}, params_nested_splits=[SPLITS],
        params_dense_values=normal(8, 2), indices=indices,
    )  # fmt: skip
add(
    "RaggedGather", {"OUTPUT_RAGGED_RANK": 2}, params_nested_splits=[OUTER, INNER.astype(np.int64)],
    params_dense_values=normal(5), indices=ints(2, 0, 2),
)  # fmt: skip
