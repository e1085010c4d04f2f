"""Order, counts and segments."""

from __future__ import annotations

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal, whole

TYPES = ["float32", "float64", "float16", "int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64"]
x = normal(3, 4, 5)
for t in TYPES:
    add("TopKV2", input=np.random.default_rng(1).permutation(20).reshape(4, 5).astype(t), k=np.int32(3))
add("TopK", {"k": 2}, input=normal(2, 3, 4))
add("NthElement", input=normal(3, 6), n=np.int32(2))
add("NthElement", {"reverse": True}, input=normal(3, 6), n=np.int32(2))
for t in ("int32", "int64", "float32", "uint8"):
    add("Unique", x=np.array([3, 1, 3, 2, 1], t))
    add("UniqueWithCounts", x=np.array([3, 1, 3, 2, 1], t))
    add("UniqueV2", known="axis", x=np.array([[3, 1], [3, 1], [2, 1]], t), axis=ints(0))
add("LowerBound", sorted_inputs=np.sort(normal(2, 6), -1), values=normal(2, 3))
add(
    "UpperBound",
    {"out_type": "int64"},
    sorted_inputs=np.sort(whole(0, 5, (2, 6)), -1).astype("int32"),
    values=whole(0, 5, (2, 3), dtype="int32"),
)
for t in ("float32", "int32", "int64", "float64"):
    add(
        "Bucketize",
        {"boundaries": [-1.0, 0.0, 0.1, 2.0]},
        input=np.array([-5, -1, 0, 0.1, 1, 2, 7, np.nan if t[0] == "f" else 3]).astype(t),
    )
add("Bincount", known="size", arr=ints(1, 1, 3, 7), size=np.int32(5), weights=np.zeros(0, "float32"))
add("Bincount", arr=ints(1, 1, 3, 7), size=np.int32(5), weights=normal(4))
add("Bincount", known="weights", arr=ints([[1, 1], [3, 7]]), size=np.int32(5), weights=np.zeros(0, "float32"))
add(
    "DenseBincount", known="weights", input=ints([[1, 1, 2], [3, 7, 0]]), size=np.int32(5), weights=np.zeros(0, "int64")
)
add(
    "DenseBincount",
    {"binary_output": True},
    "weights",
    input=ints([[1, 1, 2], [3, 7, 0]]),
    size=np.int32(5),
    weights=np.zeros(0, "float32"),
)
add("DenseBincount", input=ints([[1, 1, 2], [3, 7, 0]]), size=np.int32(5), weights=normal(2, 3))
add("DenseBincount", known="weights", input=ints(1, 1, 2), size=np.int32(5), weights=np.zeros(0, "float32"))
add("HistogramFixedWidth", values=normal(20), value_range=np.array([-1, 2], "f4"), nbins=np.int32(5))
add(
    "HistogramFixedWidth",
    {"dtype": "int64"},
    values=whole(0, 9, 12, dtype="int32"),
    value_range=ints(0, 8),
    nbins=np.int32(4),
)
for n in ["Sum", "Prod", "Max", "Min", "Mean"]:
    for t in ("float32", "int32", "int64", "float64"):
        add("Segment" + n, data=whole(1, 5, (5, 2), dtype=t), segment_ids=ints(0, 0, 2, 3, 3))
for n in ["Sum", "Prod", "Max", "Min"]:
    for t in ("float32", "int32", "float64", "uint8", "float16"):
        add(
            "UnsortedSegment" + n,
            known="num_segments",
            data=whole(1, 5, (5, 2), dtype=t),
            segment_ids=ints(3, 0, -1, 3, 1),
            num_segments=np.int32(5),
        )
    add("UnsortedSegment" + n, data=normal(2, 3, 2), segment_ids=ints([[1, 0, 1], [2, 2, 3]]), num_segments=np.int32(5))
for n in ["Sum", "Mean", "SqrtN"]:
    add("SparseSegment" + n, data=normal(5, 2), indices=ints(4, 0, 1), segment_ids=ints(0, 0, 2))
    add(
        "SparseSegment" + n + "WithNumSegments",
        data=normal(5, 2),
        indices=ints(4, 0, 1),
        segment_ids=ints(0, 0, 2),
        num_segments=np.int32(5),
    )
