"""Reductions that pass over what is no number, and values between sorted ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import typed
from entrepot.exporters.keras.dtypes import is_float
from entrepot.exporters.keras.operations.reductions import reduced
from entrepot.exporters.keras.reading.step import Step, rank_of, shape_of
from entrepot.exporters.keras.reading.table import operation


@operation("Nansum", "Nanmean", "Nanmax", "Nanmin", "Nanprod", "Nanvar", "Nanstd")
def without_nan(step: Step, x: Any) -> ir.Value:
    """Reductions of what is a number."""
    value, given, name = step.value(x, step.dtype), step.operation, type(step.operation).__name__
    if not is_float(step.dtype):
        raise step.refuse("integers are never not a number")
    missing, zero = step.op("IsNaN", value), step.value(0.0, step.dtype)

    def over(kind: str, item: ir.Value, *, keepdims: bool = given.keepdims) -> ir.Value:
        return reduced(step, kind, item, given.axis, keepdims=keepdims)

    if name in ("Nanmax", "Nanmin"):
        edge = step.value(-np.inf if name == "Nanmax" else np.inf, step.dtype)
        nothing = step.op("Cast", over("ReduceMin", step.build.cast(missing, np.int32)), to=int(ir.DataType.BOOL))
        found = over(f"ReduceM{name[-2:]}", step.op("Where", missing, edge, value))
        return step.op("Where", nothing, step.value(np.nan, step.dtype), found)
    if name == "Nanprod":
        return over("ReduceProd", step.op("Where", missing, step.value(1.0, step.dtype), value))
    present = step.build.cast(step.op("Not", missing), step.dtype)
    kept = step.op("Where", missing, zero, value)
    if name == "Nansum":
        return over("ReduceSum", kept)
    if name == "Nanmean":
        return step.op("Div", over("ReduceSum", kept), over("ReduceSum", present))
    mean = step.op("Div", over("ReduceSum", kept, keepdims=True), over("ReduceSum", present, keepdims=True))
    rest = step.op("Where", missing, zero, step.op("Sub", value, mean))
    result = step.op("Div", over("ReduceSum", step.op("Mul", rest, rest)), over("ReduceSum", present))
    return step.op("Sqrt", result) if name == "Nanstd" else result


@operation("Nanargmax", "Nanargmin")
def where_extreme(step: Step, x: Any) -> ir.Value:
    """Where the first extreme among numbers is; -1 if there are none."""
    value, given = step.value(x), step.operation
    largest = type(given).__name__ == "Nanargmax"
    axis, keepdims = given.axis, int(given.keepdims and given.axis is not None)
    if axis is None:
        value, axis = typed(step.op("Reshape", value, [-1]), value.dtype, [None]), 0
    found = value
    if is_float(value.dtype):
        missing = step.op("IsNaN", value)
        found = step.op("Where", missing, step.value(-np.inf if largest else np.inf, value.dtype), value)
    found = step.op("ArgMax" if largest else "ArgMin", found, axis=axis, keepdims=keepdims)
    if is_float(value.dtype):
        none = step.op("ReduceMin", step.build.cast(missing, np.int32), [axis], keepdims=keepdims)
        found = step.op("Where", step.build.cast(none, np.bool_), -1, found)
    if given.axis is None and given.keepdims:
        found = step.op("Reshape", found, [1] * len(step.shape))
    return step.build.cast(typed(found, np.int64, step.shape), step.dtype)


@operation("Median", "Quantile", "Percentile", "Nanmedian", "Nanquantile", "Nanpercentile")
def quantile(step: Step, x: Any, q: Any = 0.5) -> ir.Value:
    """Between the sorted values, by a straight line or as the method says."""
    given, value = step.operation, step.value(x, step.dtype)
    method = getattr(given, "method", "linear")
    if isinstance(q, ir.Value):
        raise step.refuse("a quantile that is computed")
    name = type(given).__name__
    levels = np.asarray(q, np.float64) / (100 if name.endswith("ercentile") else 1)
    value, axis = _last(step, value, given.axis)
    among_numbers = name.startswith("Nan")
    ordered, count = _ordered(step, value, among_numbers=among_numbers)
    last = step.build.cast(step.op("Sub", count, [1]), np.float64)
    exact = step.op("Mul", last, step.build.constant(levels.reshape(-1)))
    ends = _ends(step, exact, method)
    gather = "GatherElements" if among_numbers else "Gather"
    low, high = (step.op(gather, ordered, step.build.cast(end, np.int64), axis=-1) for end in ends)
    part = step.build.cast(step.op("Sub", exact, ends[0]) if method == "linear" else _half(step, *ends), step.dtype)
    result = step.op("Add", low, step.op("Mul", step.op("Sub", high, low), part))
    order = [rank_of(value) - 1, *range(rank_of(value) - 1)]
    result = step.op("Transpose", result, perm=order)
    result = step.op("Squeeze", result, [0]) if levels.ndim == 0 else result
    return step.op("Unsqueeze", result, [a + levels.ndim for a in axis]) if given.keepdims else result


def _ordered(step: Step, value: ir.Value, *, among_numbers: bool) -> tuple[ir.Value, ir.Value]:
    """The sorted rows, and how many elements count: those that are numbers come first."""
    size = step.op("Shape", value, start=-1)
    if not among_numbers:
        ordered, _ = step.op("TopK", value, size, outputs=2, axis=-1, largest=0, sorted=1)
        return typed(ordered, value.dtype, shape_of(value)), typed(size, np.int64, [1])
    missing = step.op("IsNaN", value)
    filled = step.op("Where", missing, step.value(np.inf, value.dtype), value)
    ordered, _ = step.op("TopK", filled, size, outputs=2, axis=-1, largest=0, sorted=1)
    count = step.op("ReduceSum", step.build.cast(step.op("Not", missing), np.int64), [-1])
    none = step.op("Equal", count, 0)
    ordered = step.op("Where", none, step.value(np.nan, value.dtype), ordered)
    shape = [*shape_of(value)[:-1], 1]
    return typed(ordered, value.dtype, shape_of(value)), typed(step.op("Max", count, 1), np.int64, shape)


def _ends(step: Step, exact: ir.Value, method: str) -> tuple[ir.Value, ir.Value]:
    floor, ceil, near = step.op("Floor", exact), step.op("Ceil", exact), step.op("Round", exact)
    ends = {"linear": (floor, ceil), "midpoint": (floor, ceil), "lower": (floor,) * 2}
    ends |= {"higher": (ceil,) * 2, "nearest": (near,) * 2}
    return ends[method]


def _half(step: Step, low: ir.Value, high: ir.Value) -> ir.Value:
    return step.op("Mul", step.op("Sub", high, low), 0.5)


def _last(step: Step, value: ir.Value, axis: Any) -> tuple[ir.Value, list[int]]:
    """The value with the axes that are searched as its last one, and which those are."""
    rank = rank_of(value)
    axes = sorted(at % rank for at in (range(rank) if axis is None else [axis] if isinstance(axis, int) else axis))
    rest = [at for at in range(rank) if at not in axes]
    sizes: Sequence[Any] = step.sizes(value)
    moved = step.transposed(value, [*rest, *axes])
    return (moved if len(axes) == 1 else step.reshaped(moved, [*(sizes[at] for at in rest), -1])), axes
