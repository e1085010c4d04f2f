"""Reductions of rows that belong together."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.kernels import KINDS, wider
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import computed, is_float, limits, number, where
from entrepot.exporters.tensorflow.sizes import int64, joined, rank_of, reshaped, scalar, vector
from entrepot.exporters.tensorflow.table import translates

_REDUCTIONS = {"Sum": "add", "Prod": "mul", "Max": "max", "Min": "min", "Mean": "add", "SqrtN": "add"}


def _segmented(build: Builder, x: Any, segments: Any, count: Any, rank: int, reduction: str, start: Any) -> Any:
    """Rows combined at the indices of their segments, by way of rows that are cut off for negative ones."""
    wide = wider(x.dtype, KINDS["ScatterND"])
    room = joined(build, build.op("Add", vector(build, count), [1]), build.shape(x, 1))
    empty = build.op("Expand", build.constant(start, wide), room)
    index = int64(build, segments)
    inside = build.op("And", build.op("GreaterOrEqual", index, 0), build.op("Less", index, count))
    place = build.op("Unsqueeze", build.op("Where", inside, index, count), [-1])
    result = build.op("ScatterND", empty, place, build.cast(x, wide), reduction=reduction)
    return build.cast(build.op("Slice", result, [0], vector(build, count), [0]), x.dtype)


def _number_of(build: Builder, segments: Any) -> Any:
    """One more than the last segment, as they are sorted."""
    none = build.constant(np.array([-1]))
    last = build.op("ReduceMax", build.op("Concat", none, int64(build, segments), axis=0), keepdims=0)
    return build.op("Add", last, 1)


def _counts(build: Builder, segments: Any, count: Any, rank: int, like: Any) -> Any:
    ones = build.op("Expand", number(build, 1, like), build.shape(segments))
    total = _segmented(build, ones, segments, count, 1, "add", 0)
    return build.op("Unsqueeze", total, list(range(1, rank))) if rank > 1 else total


@translates(*(f"Segment{name}" for name in ("Sum", "Prod", "Max", "Min", "Mean")))
def segment(node: Node, build: Builder, x: Any, segments: Any) -> Any:
    """Segments are sorted; one without rows is 0, of a product 1."""
    rank, name = rank_of(node), node.op.removeprefix("Segment")
    count = _number_of(build, segments)
    if name in ("Sum", "Prod"):
        return _segmented(build, x, segments, count, rank, _REDUCTIONS[name], int(name == "Prod"))
    total = _segmented(build, x, segments, count, rank, _REDUCTIONS[name], _first(name, x))
    found = _counts(build, segments, count, rank, x)
    zero = number(build, 0, x)
    value = (
        computed(build, "Div", total, computed(build, "Max", found, number(build, 1, x))) if name == "Mean" else total
    )
    return where(build, computed(build, "Equal", found, zero), zero, value)


@translates(*(f"UnsortedSegment{name}" for name in ("Sum", "Prod", "Max", "Min")))
def unsorted_segment(node: Node, build: Builder, x: Any, segments: Any, many: Any) -> Any:
    """As many segments as asked for; negative ones are left out, and one without rows is neutral."""
    rank, own, name = rank_of(node), rank_of(node, 1), node.op.removeprefix("UnsortedSegment")
    if own != 1:
        x = reshaped(build, x, [-1], build.shape(x, own)) if own else build.op("Unsqueeze", x, [0])
        segments = build.op("Reshape", segments, [-1])
    count = scalar(build, vector(build, many))
    start = 0 if name == "Sum" else 1 if name == "Prod" else _lowest(name, x)
    return _segmented(build, x, segments, count, rank - own + 1, _REDUCTIONS[name], start)


@translates(*(f"SparseSegment{name}{many}" for name in ("Sum", "Mean", "SqrtN") for many in ("", "WithNumSegments")))
def sparse_segment(node: Node, build: Builder, x: Any, indices: Any, segments: Any, many: Any = None) -> Any:
    """Of rows that are picked first."""
    name = node.op.removeprefix("SparseSegment").removesuffix("WithNumSegments")
    rank = rank_of(node)
    rows = build.op("Gather", x, int64(build, indices), axis=0)
    count = _number_of(build, segments) if many is None else scalar(build, vector(build, many))
    total = _segmented(build, rows, segments, count, rank, "add", 0)
    if name == "Sum":
        return total
    found = computed(build, "Max", _counts(build, segments, count, rank, x), number(build, 1, x))
    return computed(build, "Div", total, computed(build, "Sqrt", found) if name == "SqrtN" else found)


def _first(name: str, x: Any) -> Any:
    """What a reduction begins with where segments without rows are replaced."""
    if name == "Mean":
        return 0
    if is_float(x):
        return -np.inf if name == "Max" else np.inf
    return limits(x)[int(name == "Min")]


def _lowest(name: str, x: Any) -> Any:
    return limits(x)[int(name == "Min")]
