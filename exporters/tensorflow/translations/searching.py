"""Order: the largest, what is unique, where a number belongs, how many there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder
from entrepot.exporters.kernels import KINDS
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed, is_float, number
from entrepot.exporters.tensorflow.sizes import END, arange, axes_of, int64, part, rank_of, scalar, vector
from entrepot.exporters.tensorflow.table import translates


@translates("TopK", "TopKV2")
def top_k(node: Node, build: Builder, x: Any, k: Any = None) -> Any:
    """The largest elements of each row, the largest first, of equal ones the first first."""
    count = build.constant(np.array([node["k"]])) if node.op == "TopK" else vector(build, k)
    values, places = largest(build, x, count)
    return values, build.cast(places, node.get("index_type", np.dtype(np.int32)))


def largest(build: Builder, x: Any, count: Any, *, smallest: bool = False) -> Any:
    """``TopK`` along the last axis."""
    wide = build.cast(x, ir.DataType.INT32) if x.dtype in (ir.DataType.UINT16, ir.DataType.BOOL) else x
    values, places = computed(build, "TopK", wide, count, outputs=2, axis=-1, largest=int(not smallest), sorted=1)
    return build.cast(values, x.dtype), places


@translates("NthElement")
def nth_element(node: Node, build: Builder, x: Any, n: Any) -> Any:
    """The n-th smallest of each row."""
    count = build.op("Add", vector(build, n), 1)
    values, _ = largest(build, x, count, smallest=not node["reverse"])
    return build.op("Squeeze", part(build, values, -1, END, -1), [-1])


@translates("Unique", "UniqueWithCounts", "UniqueV2", "UniqueWithCountsV2")
def unique(node: Node, build: Builder, x: Any, axis: Any = None) -> Any:
    """What occurs, in the order of its first occurrence."""
    along = None
    if axis is not None and (node.shape(1) or (0,))[0]:
        (along,) = axes_of(node, 1, rank_of(node))
    if along == 0 and rank_of(node) == 1:
        along = None
    values, _, places, counts = _unique(build, x, along)
    kind = node["out_idx"]
    places = build.op("Reshape", places, [-1])
    results = (values, build.cast(places, kind), build.cast(counts, kind))
    return results if "Counts" in node.op else results[:2]


def _unique(build: Builder, x: Any, axis: int | None) -> Any:
    wide = x.dtype if x.dtype in KINDS["Unique"] else ir.DataType.FLOAT if is_float(x) else ir.DataType.INT64
    values, first, places, counts = build.op("Unique", build.cast(x, wide), outputs=4, axis=axis, sorted=0)
    return build.cast(values, x.dtype), first, places, counts


@translates("LowerBound", "UpperBound")
def bound(node: Node, build: Builder, rows: Any, values: Any) -> Any:
    """How many numbers of a sorted row are smaller, or not larger, than each value."""
    op = "Less" if node.op == "LowerBound" else "LessOrEqual"
    before = computed(build, op, build.op("Unsqueeze", rows, [-2]), build.op("Unsqueeze", values, [-1]))
    count = build.op("ReduceSum", build.cast(before, np.int64), [-1], keepdims=0)
    return build.cast(count, node["out_type"])


@translates("Bucketize")
def bucketize(node: Node, build: Builder, x: Any) -> Any:
    """How many boundaries are not larger; TensorFlow compares them with integers as floats."""
    bounds = np.array(node["boundaries"], np.float32)
    exact = x.dtype in (ir.DataType.DOUBLE, ir.DataType.FLOAT)
    given: Any = x if exact else build.cast(x, np.float32 if is_float(x) else np.float64)
    limits = build.constant(bounds.astype(given.dtype.numpy()))
    reached = build.op("GreaterOrEqual", build.op("Unsqueeze", given, [-1]), limits)
    count = build.op("ReduceSum", build.cast(reached, np.int32), [-1], keepdims=0)
    if not is_float(x):
        return count
    return build.op("Where", computed(build, "IsNaN", x), build.constant(np.array(len(bounds), np.int32)), count)


@translates("Bincount")
def bincount(node: Node, build: Builder, x: Any, size: Any, weights: Any) -> Any:
    """How often each number occurs, or the sum of its weights."""
    flat = build.op("Reshape", x, [-1])
    own = node.shape(2)
    if own == (0,):
        added = _ones(build, flat, weights)
    else:  # there may be none of them
        given = build.op("Reshape", weights, [-1])
        added = build.op("Concat", given, _ones(build, flat, weights), axis=0)
        added = build.op("Slice", added, [0], build.op("Shape", flat), [0])
    return _counted(build, flat, added, scalar(build, vector(build, size)))


@translates("DenseBincount")
def dense_bincount(node: Node, build: Builder, x: Any, size: Any, weights: Any) -> Any:
    """The same for each row, or whether it occurs at all."""
    shape, many = node.shape(0), scalar(build, vector(build, size))
    own = node.shape(2)
    if shape is None or own is None or (None in own and own != shape and len(own) != len(shape)):
        return node.refuse("takes numbers of unknown rank")
    added = _ones(build, x, weights) if own == (0,) or node["binary_output"] else weights
    if len(shape) == 1:
        return _counted(build, x, added, many, largest=node["binary_output"])
    rows = build.size(x, 0)
    first = build.op("Unsqueeze", build.op("Mul", arange(build, rows), many), [1])
    index = int64(build, x)
    inside = build.op("And", build.op("GreaterOrEqual", index, 0), build.op("Less", index, many))
    total = build.op("Mul", rows, many)
    place = build.op("Reshape", build.op("Where", inside, build.op("Add", index, first), total), [-1])
    counted = _counted(build, place, build.op("Reshape", added, [-1]), total, largest=node["binary_output"])
    return build.op(
        "Reshape", counted, build.op("Concat", vector(build, rows), vector(build, many), axis=0), allowzero=1
    )


def _ones(build: Builder, like: Any, weights: Any) -> Any:
    return build.op("Expand", number(build, 1, weights), build.shape(like))


def _counted(build: Builder, x: Any, weights: Any, size: Any, *, largest: bool = False) -> Any:
    """Sums of weights at indices below a size; others go to a place that is cut off."""
    index = int64(build, x)
    inside = build.op("And", build.op("GreaterOrEqual", index, 0), build.op("Less", index, size))
    place = build.op("Where", inside, index, size)
    room = vector(build, build.op("Add", size, 1))
    zeros = computed(build, "Expand", number(build, 0, weights), room)
    summed = build.op("ScatterElements", zeros, place, weights, axis=0, reduction="max" if largest else "add")
    return part(build, summed, 0, vector(build, size), 0)


@translates("HistogramFixedWidth")
def histogram(node: Node, build: Builder, x: Any, bounds: Any, bins: Any) -> Any:
    """How many values are in each of several intervals; those outside count to the nearest."""
    flat = build.cast(build.op("Reshape", x, [-1]), np.float64)
    low, high = (build.op("Gather", build.cast(bounds, np.float64), at) for at in (0, 1))
    many = scalar(build, vector(build, bins))
    step = build.op("Div", build.op("Sub", high, low), build.cast(many, np.float64))
    place = build.op("Floor", build.op("Div", build.op("Sub", flat, low), step))
    top = build.cast(build.op("Sub", many, 1), np.float64)
    index = build.cast(build.op("Max", build.op("Min", place, top), 0.0), np.int32)
    one = build.constant(np.array(1, node["dtype"]))
    return _counted(build, index, build.op("Expand", one, build.shape(flat)), many)
