"""Elements by their indices, and written at them."""

from __future__ import annotations

import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal, whole

TYPES = ["float32", "float64", "float16", "int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64"]
x = normal(3, 4, 5)
add("Gather", params=x, indices=ints([[0, 2], [1, 1]]))
for ax, bd, ish in (
    (0, 0, (2,)),
    (1, 0, (2, 3)),
    (-1, 0, ()),
    (1, 1, (3, 2)),
    (2, 1, (3, 2, 2)),
    (2, 2, (3, 4, 2)),
    (2, 0, (1,)),
):
    add("GatherV2", {"batch_dims": bd}, "axis", params=x, indices=whole(0, 3, ish, dtype="int32"), axis=np.int32(ax))
add("GatherNd", params=x, indices=ints([[0, 1], [2, 3]]))
add("GatherNd", closed="indices", params=x, indices=np.zeros((2, 0), np.int32))
add("GatherNd", params=x.astype("int8"), indices=ints([[[0, 1, 2]], [[2, 3, 4]]]))
for t in ("float32", "int32", "bool", "uint8", "int64", "float64"):
    add(
        "OneHot",
        {"axis": -1},
        indices=ints([[0, 2], [-1, 7]]),
        depth=np.int32(4),
        on_value=np.array(1, t),
        off_value=np.array(0, t),
    )
add(
    "OneHot",
    {"axis": 0},
    "depth",
    indices=ints(0, 2, 1),
    depth=np.int32(4),
    on_value=np.float32(1),
    off_value=np.float32(0),
)
add("InvertPermutation", x=ints(3, 1, 0, 2))
add("UnravelIndex", indices=ints(22, 3, 7), dims=ints(3, 4, 5))
add("InTopK", {"k": 2}, predictions=normal(4, 5), targets=ints(0, 4, 2, 7))
add("InTopKV2", predictions=normal(4, 5), targets=ints(0, 4, 2, 1), k=np.int32(3))
add(
    "InTopKV2",
    predictions=np.array([[1, np.nan, 2], [np.inf, 1, 2], [1, 1, 1]], "f4"),
    targets=ints(0, 1, 2),
    k=np.int32(2),
)
add("Where", condition=x > 0)
add("Where", condition=x.astype("int8"))
add("DynamicPartition", {"num_partitions": 3}, data=normal(5, 2), partitions=ints(0, 2, 1, 0, 2))
add("DynamicPartition", {"num_partitions": 2}, data=normal(2, 3, 2), partitions=ints([[0, 1, 1], [0, 0, 1]]))
add("DynamicStitch", indices=[ints(0, 2), ints(1, 3, 2)], data=[normal(2, 3), normal(3, 3)])
add("DynamicStitch", indices=[ints(6), ints([[1, 3], [2, 0]])], data=[normal(1, 3), normal(2, 2, 3)])
add("ListDiff", x=ints(1, 2, 3, 4, 3), y=ints(2, 4))
for n in ["Update", "Add", "Sub", "Max", "Min"]:
    for t in ("float32", "int32", "int8", "float64", "uint8", "float16"):
        add(
            "TensorScatter" + n,
            tensor=whole(0, 9, (4, 3), dtype=t),
            indices=ints([[0], [2], [0]]) if n != "Update" else ints([[0], [2], [3]]),
            updates=whole(0, 9, (3, 3), dtype=t),
        )
add("TensorScatterAdd", tensor=normal(4, 3), indices=ints([[0, 1], [2, 2]]), updates=normal(2))
add("ScatterNd", indices=ints([[0], [2], [0]]), updates=normal(3, 2), shape=ints(4, 2))
add("ScatterNd", indices=ints([[0], [2], [0]]), updates=whole(0, 5, (3, 2), dtype="int64"), shape=ints(4, 2))
