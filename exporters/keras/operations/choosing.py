"""Taking, scattering, counting, creating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import typed
from entrepot.exporters.keras.dtypes import is_float
from entrepot.exporters.keras.reading.step import Step, rank_of, shape_of
from entrepot.exporters.keras.reading.table import operation
from entrepot.exporters.truth import any_of


@operation("Take")
def take(step: Step, x: Any, indices: Any) -> ir.Value:
    """Members by number, along an axis or in a row."""
    value, axis = step.value(x), step.operation.axis
    if axis is None:
        value, axis = step.reshaped(value, [-1]), 0
    return step.op("Gather", value, _whole(step, indices), axis=axis)


def _whole(step: Step, indices: Any) -> ir.Value:
    value = step.value(indices)
    return value if value.dtype in (ir.DataType.INT32, ir.DataType.INT64) else step.build.cast(value, np.int64)


@operation("TakeAlongAxis")
def take_along_axis(step: Step, x: Any, indices: Any) -> ir.Value:
    """One member for each index; other axes broadcast."""
    value, at, axis = step.value(x), _whole(step, indices), step.operation.axis
    if axis is None:
        return step.op("GatherElements", step.reshaped(value, [-1]), step.reshaped(at, [-1]), axis=0)
    axis %= rank_of(value)
    own, theirs = shape_of(value), shape_of(at)
    if any(a != b for i, (a, b) in enumerate(zip(own, theirs, strict=True)) if i != axis):
        value, at = _broadcast(step, value, at, axis)
    return step.op("GatherElements", value, at, axis=axis)


def _broadcast(step: Step, value: ir.Value, at: ir.Value, axis: int) -> tuple[ir.Value, ir.Value]:
    shapes = step.op("Shape", value), step.op("Shape", at)
    one = step.build.constant(np.arange(rank_of(value)) == axis)
    with_one = [step.op("Where", one, [1], shape) for shape in shapes]
    return step.op("Expand", value, with_one[1]), step.op("Expand", at, with_one[0])


@operation("OneHot")
def one_hot(step: Step, x: Any) -> ir.Value:
    """Zeros but for a one; none where the number is out of range."""
    given, value = step.operation, step.build.cast(step.value(x), np.int64)
    axis, rank = given.axis, rank_of(value)
    places = np.arange(given.num_classes)
    at = axis % (rank + 1)
    shape = [-1 if each == at else 1 for each in range(rank + 1)]
    found = step.op("Equal", step.op("Unsqueeze", value, [at]), places.reshape(shape))
    return step.build.cast(found, step.dtype)


@operation("MultiHot")
def multi_hot(step: Step, inputs: Any) -> ir.Value:
    """Ones where a number occurs."""
    given, value = step.operation, step.build.cast(step.value(inputs), np.int64)
    axis = given.axis % rank_of(value)
    shape = [-1 if each == axis + 1 else 1 for each in range(rank_of(value) + 1)]
    found = step.op("Equal", step.op("Unsqueeze", value, [axis + 1]), np.arange(given.num_classes).reshape(shape))
    return step.build.cast(any_of(step.build, found, [axis]), step.dtype)


@operation("Digitize", "SearchSorted")
def digitize(step: Step, x: Any, bins: Any) -> ir.Value:
    """How many bounds an element is not below; SearchSorted has its operands the other way."""
    given, name = step.operation, type(step.operation).__name__
    value, bounds = (bins, x) if name == "SearchSorted" else (x, bins)
    left, right = step.operands(value, bounds)
    reached = step.op(
        "Less" if getattr(given, "side", "right") == "left" else "LessOrEqual",
        right, step.op("Unsqueeze", left, [-1]),
    )  # fmt: skip
    if name == "Digitize" and is_float(left.dtype):  # what is no number lies beyond all bounds
        reached = step.op("Or", reached, step.op("Unsqueeze", step.op("IsNaN", left), [-1]))
    counted = step.op("ReduceSum", step.build.cast(reached, np.int64), [-1], keepdims=0)
    return step.build.cast(typed(counted, np.int64, step.shape), step.dtype)


@operation("Bincount")
def bincount(step: Step, x: Any) -> ir.Value:
    """How often each number occurs, up to a known one."""
    given, value = step.operation, step.build.cast(step.value(x), np.int64)
    length = step.shape[-1]
    if length is None:
        raise step.refuse("how many numbers there are depends on values; give minlength and one-hot counts instead")
    found = step.build.cast(step.op("Equal", step.op("Unsqueeze", value, [-1]), np.arange(length)), step.dtype)
    if given.weights is not None:
        found = step.op("Mul", found, step.op("Unsqueeze", step.value(given.weights, step.dtype), [-1]))
    return step.op("ReduceSum", found, [-2], keepdims=0)


@operation("Scatter")
def scatter(step: Step, indices: Any, values: Any) -> ir.Value:
    """Values added up at places of a tensor of zeros."""
    zeros = np.zeros(tuple(int(size) for size in step.operation.shape), step.dtype.numpy())
    at = step.build.cast(step.value(indices), np.int64)
    return step.op("ScatterND", step.value(zeros), at, step.value(values, step.dtype), reduction="add")


@operation("ScatterUpdate")
def scatter_update(step: Step, inputs: Any, indices: Any, updates: Any) -> ir.Value:
    """Values put at places, or combined with what is there."""
    names = {None: "none", "add": "add", "max": "max", "min": "min", "mul": "mul"}
    at = step.build.cast(step.value(indices), np.int64)
    reduction = names[step.operation.reduction]
    return step.op(
        "ScatterND", step.value(inputs, step.dtype), at, step.value(updates, step.dtype), reduction=reduction
    )


@operation("Slice")
def slice_from(step: Step, inputs: Any, start_indices: Any) -> ir.Value:
    """A part of a certain shape."""
    value, shape = step.value(inputs), list(step.operation.shape)
    begin = step.build.cast(step.value(start_indices), np.int64) if not _plain(start_indices) else None
    most = np.iinfo(np.int64).max
    axes = list(range(len(shape)))
    if begin is None:
        starts = [int(each) for each in start_indices]
        ends = [most if size == -1 else at + int(size) for at, size in zip(starts, shape, strict=True)]
        return step.op("Slice", value, starts, ends, axes)
    if -1 in shape:
        raise step.refuse("a part up to the end from a place that is computed")
    return step.op("Slice", value, begin, step.op("Add", begin, [int(size) for size in shape]), axes)


@operation("SliceUpdate")
def slice_update(step: Step, inputs: Any, start_indices: Any, updates: Any) -> ir.Value:
    """A part replaced, which is moved to where it fits in."""
    value, part = step.value(inputs, step.dtype), step.value(updates, step.dtype)
    held, sizes = shape_of(value), shape_of(part)
    starts = _starts(step, start_indices, len(sizes))
    moved = [_fitting(*each) for each in zip(starts, held, sizes, strict=True)]
    if None not in moved:
        grid = np.stack(np.meshgrid(*(np.arange(size or 0) for size in sizes), indexing="ij"), -1)
        return step.op("ScatterND", value, (grid + np.array(moved)).astype(np.int64), part)
    return _replaced(step, value, part, starts, 0)


def _fitting(start: Any, whole: int | None, size: int | None) -> int | None:
    """Where a part begins, if that and the sizes are known."""
    if whole is None or size is None or not isinstance(start, int):
        return None
    return max(0, min(start, whole - size))


def _starts(step: Step, given: Any, count: int) -> list[Any]:
    """Where a part begins: numbers, and int64 scalars of the graph."""
    if isinstance(given, ir.Value):
        whole = step.value(given, np.int64)
        return [step.op("Gather", whole, np.int64(axis)) for axis in range(count)]
    return [step.value(each, np.int64) if isinstance(each, ir.Value) else int(each) for each in given]


def _replaced(step: Step, value: ir.Value, part: ir.Value, starts: Sequence[Any], axis: int) -> ir.Value:
    """What is before the part along an axis, the part in what is beside it along the next ones, what is behind it."""
    if axis == len(starts):
        return part
    held, size = shape_of(value), shape_of(part)[axis]
    if size is not None and size == held[axis]:
        return _replaced(step, value, part, starts, axis + 1)
    length = step.build.size(part, axis)
    room = step.op("Sub", step.build.size(value, axis), length)
    start = step.op("Max", step.op("Min", step.value(starts[axis], np.int64), room), np.int64(0))
    begin, end = (step.op("Unsqueeze", each, [0]) for each in (start, step.op("Add", start, length)))
    most = [np.iinfo(np.int64).max]
    inner = typed(step.op("Slice", value, begin, end, [axis]), value.dtype, [*held[:axis], size, *held[axis + 1 :]])
    pieces = (
        step.op("Slice", value, [0], begin, [axis]),
        _replaced(step, inner, part, starts, axis + 1),
        step.op("Slice", value, end, most, [axis]),
    )
    return typed(step.op("Concat", *pieces, axis=axis), value.dtype, held)


def _plain(items: Any) -> bool:
    return isinstance(items, list | tuple) and all(isinstance(item, int | np.integer) for item in items)


@operation("ZerosLike", "OnesLike", "EmptyLike")
def filled_like(step: Step, x: Any) -> ir.Value:
    """A constant in the shape of another tensor."""
    number = 1 if type(step.operation).__name__ == "OnesLike" else 0
    return step.op("Expand", step.value(number, step.dtype), step.build.shape(step.value(x)))


@operation("FullLike")
def full_like(step: Step, x: Any, fill_value: Any) -> ir.Value:
    """A value in the shape of another tensor."""
    return step.op("Expand", step.value(fill_value, step.dtype), step.build.shape(step.value(x)))


@operation("Full")
def full(step: Step, fill_value: Any) -> ir.Value:
    """A value in a certain shape."""
    shape = [int(size) for size in step.operation.shape]
    return step.op("Expand", step.value(fill_value, step.dtype), shape)


@operation("Size")
def size(step: Step, x: Any) -> ir.Value:
    """How many elements there are."""
    return step.build.cast(step.op("Size", step.value(x)), step.dtype)


@operation("SegmentSum", "SegmentMax", "SegmentMin", "SegmentProd")
def segments(step: Step, data: Any, segment_ids: Any) -> ir.Value:
    """Rows combined by the number of their segment; out of range they are dropped."""
    count, value = step.operation.num_segments, step.value(data, step.dtype)
    if count is None:
        raise step.refuse("give num_segments: how many there are depends on values")
    name = type(step.operation).__name__.removeprefix("Segment").lower()
    info = np.finfo(step.dtype.numpy()) if is_float(step.dtype) else np.iinfo(step.dtype.numpy())
    low, high = (-np.inf, np.inf) if is_float(step.dtype) else (int(info.min), int(info.max))
    start = {"sum": 0, "prod": 1, "max": low, "min": high}[name]
    at = step.build.cast(step.value(segment_ids), np.int64)
    valid = step.op("And", step.op("GreaterOrEqual", at, 0), step.op("Less", at, count))
    at = step.op("Where", valid, at, step.value(count, np.int64))
    shape = step.op("Concat", step.build.constant([count + 1], np.int64), step.op("Shape", value, start=1), axis=0)
    empty = step.op("Expand", step.value(start, step.dtype), shape)
    reduction = {"sum": "add", "prod": "mul"}.get(name, name)
    found = step.op("ScatterND", empty, step.op("Unsqueeze", at, [-1]), value, reduction=reduction)
    return step.op("Slice", found, [0], [count], [0])


@operation("ExtractSequences")
def extract_sequences(step: Step, x: Any) -> ir.Value:
    """Windows of the last axis."""
    given, value = step.operation, step.value(x)
    size = step.build.size(value, -1)
    count = step.op("Add", step.op("Div", step.op("Sub", size, given.sequence_length), given.sequence_stride), 1)
    starts = step.op("Mul", step.op("Range", 0, count, 1), given.sequence_stride)
    places = step.op("Add", step.op("Unsqueeze", starts, [1]), np.arange(given.sequence_length)[None])
    return step.op("Gather", value, places, axis=-1)
