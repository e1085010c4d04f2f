"""Rows of different lengths as one padded tensor, and ranges of different lengths in a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.composed import in_place
from entrepot.exporters.tensorflow.compositions.ragged import padded
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed
from entrepot.exporters.tensorflow.sizes import END, int64, joined, part, scalar, vector
from entrepot.exporters.tensorflow.table import translates


@translates("RaggedTensorToTensor")
def to_tensor(node: Node, build: Builder, shape: Any, values: Any, default: Any, *partitions: Any) -> Any:
    """With a value where a row is shorter than the longest one, or cut off at a length that is asked for."""
    kinds = node["row_partition_types"]
    if kinds not in (["ROW_SPLITS"], ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]):
        return in_place(node, build, padded, [shape, values, default, *partitions])
    place = build.op("Range", 0, build.size(values, 0), 1)
    if kinds == ["ROW_SPLITS"]:
        splits = int64(build, partitions[0])
        starts, ends = part(build, splits, 0, -1, 0), part(build, splits, 1, END, 0)
        count = build.op("Shape", starts)
        reached = build.op("GreaterOrEqual", build.op("Unsqueeze", place, [1]), ends)
        row = build.op("ReduceSum", build.cast(reached, np.int64), [1], keepdims=0)
        lengths = build.op("Sub", ends, starts)
    else:
        count, row = vector(build, partitions[0]), int64(build, partitions[1])
        zeros, ones = (
            build.op("Expand", build.constant(np.array(0)), count),
            build.op("Add", build.op("Mul", row, 0), 1),
        )
        lengths = build.op("ScatterElements", zeros, row, ones, axis=0, reduction="add")
        starts = build.op("CumSum", lengths, build.constant(np.array(0)), exclusive=1)
    starts = build.op("Concat", starts, [0], axis=0)  # of what is in no row, and so in the one behind the last
    column = build.op("Sub", place, build.op("Gather", starts, row))
    longest = build.op("ReduceMax", build.op("Concat", lengths, [0], axis=0), keepdims=1)
    height, width = _sizes(node, build, shape, count, longest)
    last = scalar(build, build.op("Min", height, count))
    fits = build.op("And", build.op("Less", row, last), build.op("Less", column, scalar(build, width)))
    spots = build.op("Concat", *(build.op("Unsqueeze", each, [1]) for each in (row, column)), axis=1)
    spots, kept = (computed(build, "Compress", each, fits, axis=0) for each in (spots, values))
    room = computed(build, "Expand", default, joined(build, height, width, build.shape(values, 1)))
    return build.op("ScatterND", room, spots, kept)


def _sizes(node: Node, build: Builder, shape: Any, count: Any, longest: Any) -> tuple[Any, Any]:
    """How many rows and columns are asked for; as many as there are where it is left open."""
    if node.shape(0) == ():
        return count, longest
    wanted = int64(build, shape)
    found = []
    for at, own in enumerate((count, longest)):
        given = part(build, wanted, at, at + 1, 0)
        found.append(build.op("Where", build.op("Less", given, [0]), own, given))
    return found[0], found[1]


@translates("RaggedRange")
def ranges(node: Node, build: Builder, starts: Any, limits: Any, deltas: Any) -> Any:
    """One range after the other, and where each begins."""
    if node.dtype(0).kind not in "iu":
        node.refuse("of numbers that are not whole has no counterpart")
    first, last, step = (int64(build, each) for each in (starts, limits, deltas))
    gap = build.op("Add", build.op("Sub", last, first), build.op("Sub", step, build.op("Sign", step)))
    counts = build.op("Max", build.op("Div", gap, step), 0)
    counts = build.op("Reshape", build.op("Add", counts, build.op("Mul", build.op("Add", first, last), 0)), [-1])
    ends = build.op("CumSum", counts, build.constant(np.array(0)))
    splits = build.op("Concat", [0], ends, axis=0)
    total = build.op("Gather", splits, build.constant(np.array(-1)))
    place = build.op("Range", 0, total, 1)
    reached = build.op("GreaterOrEqual", build.op("Unsqueeze", place, [1]), ends)
    row = build.op("ReduceSum", build.cast(reached, np.int64), [1], keepdims=0)
    own = build.op("Sub", place, build.op("Gather", splits, row))
    begin, by = (build.op("Gather", build.op("Expand", each, build.op("Shape", counts)), row) for each in (first, step))
    values = build.op("Add", begin, build.op("Mul", own, by))
    return build.cast(splits, node["Tsplits"]), build.cast(values, starts.dtype)
