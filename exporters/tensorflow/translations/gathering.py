"""Elements and rows by their indices; what is out of range is an error in TensorFlow, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed, number, where
from entrepot.exporters.tensorflow.sizes import (
    arange,
    dims,
    int64,
    integers,
    joined,
    rank_of,
    reshaped,
    scalar,
    vector,
)
from entrepot.exporters.tensorflow.table import translates


@translates("Gather")
def gather(node: Node, build: Builder, x: Any, indices: Any) -> Any:
    """Along the first axis."""
    return build.op("Gather", x, int64(build, indices), axis=0)


@translates("GatherV2")
def gather_along(node: Node, build: Builder, x: Any, indices: Any, axis: Any) -> Any:
    """Along an axis, for each member of a batch by its own indices."""
    rank, own, batch = rank_of(node), len(node.shape(1) or ()), node["batch_dims"]
    (along,) = integers(node, 2)
    along, batch = along % rank, batch % own if batch < 0 else batch
    index = int64(build, indices)
    if not batch:
        return build.op("Gather", x, index, axis=along)
    # rows of a batch follow one another in one axis, and so do their indices, moved on by the rows before
    lead = build.op("ReduceProd", build.shape(x, 0, batch), keepdims=1)
    count = build.shape(x, along, along + 1)
    before, after = list(range(batch, along)), list(range(along + 1, rank))
    order = [*range(batch), along, *before, *after]
    turned = build.op("Transpose", x, perm=order) if order != list(range(rank)) else x
    rest = dims(build, x, [*before, *after])
    rows = reshaped(build, turned, build.op("Mul", lead, count), rest)
    first = build.op("Mul", arange(build, scalar(build, lead)), count)
    spread = build.op("Reshape", index, joined(build, lead, [-1]))
    flat = build.op("Add", spread, build.op("Unsqueeze", first, [1]))
    shape = joined(build, build.shape(indices), rest)
    picked = reshaped(build, build.op("Gather", rows, build.op("Reshape", flat, [-1])), shape)
    more, places = own - batch, list(range(own, own + len(before)))
    final = [*range(batch), *places, *range(batch, batch + more), *range(own + len(before), own + rank - batch - 1)]
    return build.op("Transpose", picked, perm=final) if final != sorted(final) else picked


@translates("GatherNd")
def gather_nd(node: Node, build: Builder, x: Any, indices: Any) -> Any:
    """By rows of indices; rows of none of them are the whole tensor."""
    if (node.shape(1) or (None,))[-1] == 0:
        return computed(build, "Expand", x, joined(build, build.shape(indices, 0, -1), build.shape(x)))
    return build.op("GatherND", x, int64(build, indices))


@translates("OneHot")
def one_hot(node: Node, build: Builder, indices: Any, depth: Any, on: Any, off: Any) -> Any:
    """One value at each index, another elsewhere; an index that is out of range is nowhere."""
    rank = rank_of(node)
    axis = node["axis"] if node["axis"] != -1 else rank
    shape = [1] * (rank + 1)
    shape[axis] = -1
    classes = build.op("Reshape", arange(build, scalar(build, vector(build, depth))), shape)
    here = build.op("Equal", build.op("Unsqueeze", int64(build, indices), [axis]), classes)
    return where(build, here, on, off)


@translates("InvertPermutation")
def invert_permutation(node: Node, build: Builder, x: Any) -> Any:
    """Where each number is."""
    count = build.size(x, 0)
    own = arange(build, count)
    zeros = build.op("Mul", own, 0)
    return build.cast(build.op("ScatterElements", zeros, int64(build, x), own, axis=0), x.dtype)


@translates("UnravelIndex")
def unravel_index(node: Node, build: Builder, indices: Any, sizes: Any) -> Any:
    """The index along each axis of an index of all elements."""
    count = int((node.shape(1) or (0,))[0] or 0)
    if not count:
        node.refuse("takes a shape of which the rank is not known")
    rest, rows = int64(build, indices), []
    whole = int64(build, sizes)
    for axis in range(count - 1, -1, -1):
        size = build.op("Gather", whole, axis)
        rows.append(build.op("Mod", rest, size))
        rest = build.op("Div", rest, size)
    return build.cast(
        build.op("Concat", *(build.op("Unsqueeze", row, [0]) for row in rows[::-1]), axis=0), indices.dtype
    )


@translates("InTopK", "InTopKV2")
def in_top_k(node: Node, build: Builder, predictions: Any, targets: Any, k: Any = None) -> Any:
    """Whether fewer than k classes are more likely; none of a row that is not finite where it counts."""
    many = build.constant(np.array(node["k"], np.int64)) if node.op == "InTopK" else int64(build, k)
    index = int64(build, targets)
    count = build.size(predictions, 1)
    valid = build.op("And", build.op("GreaterOrEqual", index, 0), build.op("Less", index, count))
    safe = build.op("Where", valid, index, 0)
    own = build.op("GatherElements", predictions, build.op("Unsqueeze", safe, [1]), axis=1)
    more = build.cast(build.op("Greater", predictions, own), np.int64)
    finite = _finite(build, predictions)
    before = build.op("Less", build.op("ReduceSum", more, [1], keepdims=0), many)
    whole = build.op("ReduceMin", build.cast(finite, np.int32), [1], keepdims=0)
    return build.op("And", build.op("And", valid, before), build.cast(whole, np.bool_))


def _finite(build: Builder, x: Any) -> Any:
    return build.op("Not", build.op("Or", build.op("IsNaN", x), build.op("IsInf", x)))


@translates("Where")
def places(node: Node, build: Builder, x: Any) -> Any:
    """The indices of all that is not zero, row by row."""
    if not rank_of(node):
        return node.refuse("of a scalar has no counterpart")
    given = build.cast(x, np.bool_)
    return build.op("Transpose", build.op("NonZero", given), perm=[1, 0])


@translates("DynamicPartition")
def dynamic_partition(node: Node, build: Builder, x: Any, partitions: Any) -> Any:
    """The rows of each part."""
    own = rank_of(node, 1)
    rows = reshaped(build, x, [-1], build.shape(x, own)) if own != 1 else x
    flat = build.op("Reshape", int64(build, partitions), [-1])
    count = node["num_partitions"]
    parts = (computed(build, "Compress", rows, build.op("Equal", flat, part), axis=0) for part in range(count))
    return tuple(parts)


@translates("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(node: Node, build: Builder, *values: Any) -> Any:
    """Rows at their indices; the last one counts where an index comes twice."""
    half = len(values) // 2
    indices, rows = values[:half], values[half:]
    flat, together = [], []
    for at, (index, row) in enumerate(zip(indices, rows, strict=True)):
        flat.append(build.op("Reshape", int64(build, index), [-1]))
        together.append(reshaped(build, row, _count(build, index), build.shape(row, rank_of(node, at))))
    every = build.op("Concat", *flat, axis=0)
    whole = build.op("Concat", *together, axis=0)
    least = build.constant(np.array([-1]))
    count = build.op("Add", build.op("ReduceMax", build.op("Concat", least, every, axis=0), keepdims=1), 1)
    # the place of the last row for each index
    zeros = build.op("Expand", build.constant(np.array(-1)), count)
    last = build.op("ScatterElements", zeros, every, arange(build, build.size(every, 0)), axis=0, reduction="max")
    missing = build.op("Less", last, 0)
    picked = build.op("Gather", whole, build.op("Max", last, 0), axis=0)
    rank = 1 + len(node.shape(half) or ()) - len(node.shape(0) or ())
    mask = build.op("Unsqueeze", missing, list(range(1, rank))) if rank > 1 else missing
    return where(build, mask, number(build, 0, picked), picked)


def _count(build: Builder, value: Any) -> Any:
    return build.op("Reshape", build.op("Size", value), [1])


@translates("ListDiff")
def list_difference(node: Node, build: Builder, x: Any, y: Any) -> Any:
    """What is in one list only, and where."""
    same = computed(build, "Equal", build.op("Unsqueeze", x, [1]), build.op("Unsqueeze", y, [0]))
    found = build.op("ReduceSum", build.cast(same, np.int32), [1], keepdims=0)
    kept = build.op("Equal", found, 0)
    place = build.op("Compress", arange(build, build.size(x, 0)), kept, axis=0)
    return computed(build, "Compress", x, kept, axis=0), build.cast(place, node["out_idx"])
