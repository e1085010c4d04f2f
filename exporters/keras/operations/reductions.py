"""Sums, extremes, statistics, searches, sorting, running sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import typed
from entrepot.exporters.keras.dtypes import element_of, is_float
from entrepot.exporters.keras.reading.step import Step, rank_of, shape_of
from entrepot.exporters.keras.reading.table import operation
from entrepot.exporters.truth import all_of, any_of

_REDUCTIONS = {
    "Sum": "ReduceSum", "Mean": "ReduceMean", "Prod": "ReduceProd",
    "Max": "ReduceMax", "Amax": "ReduceMax", "Min": "ReduceMin", "Amin": "ReduceMin", "Logsumexp": "ReduceLogSumExp",
}  # fmt: skip


def reduced(step: Step, name: str, value: ir.Value, axis: Any, *, keepdims: bool) -> ir.Value:
    """A reduction over an axis, several, or all."""
    axes = axes_of(axis)
    if axes == []:
        return value
    return step.op(name, value, axes, keepdims=int(keepdims))


def axes_of(axis: Any) -> list[int] | None:
    """The axes that an argument names; ``None`` for all."""
    return None if axis is None else [axis] if isinstance(axis, int) else [int(each) for each in axis]


def extreme(step: Step, name: str, value: ir.Value, axis: Any, *, keepdims: bool) -> ir.Value:
    """The same for ``ReduceMax`` and ``ReduceMin``; not a number, if one of the elements is none.

    onnxruntime 1.31 passes over these; a sum of sizes does not.
    """
    found = reduced(step, name, value, axis, keepdims=keepdims)
    if not is_float(value.dtype) or axis in ((), []):
        return found
    lost = step.op("IsNaN", reduced(step, "ReduceL1", value, axis, keepdims=keepdims))
    return step.op("Where", lost, step.value(np.nan, value.dtype), found)


def _log_of_sum(step: Step, name: str, value: ir.Value, axis: Any, *, keepdims: bool) -> ir.Value:
    """The same for ``ReduceLogSumExp``; onnxruntime 1.31 subtracts no maximum if minus infinity comes first."""
    kind = np.float64 if value.dtype == ir.DataType.DOUBLE else np.float32
    lowest = step.value(float(np.finfo(kind).min), kind)
    value, given = step.build.cast(value, kind), value.dtype
    found = reduced(step, name, step.op("Max", value, lowest), axis, keepdims=keepdims)
    largest = reduced(step, "ReduceMax", value, axis, keepdims=keepdims)  # the lowest number, or minus infinity
    return step.build.cast(step.op("Where", step.op("LessOrEqual", found, lowest), largest, found), given)


_CAREFUL = {"ReduceMax": extreme, "ReduceMin": extreme, "ReduceLogSumExp": _log_of_sum}


@operation(*_REDUCTIONS)
def reduction(step: Step, x: Any) -> ir.Value:
    """One operator, in the type of the result; truth is reduced as 0 and 1."""
    given, name = step.operation, _REDUCTIONS[type(step.operation).__name__]
    value = step.value(x)
    narrow = step.dtype if step.dtype not in _NARROW else element_of("int32")
    over = _CAREFUL.get(name, reduced)
    result = over(step, name, step.build.cast(value, narrow), given.axis, keepdims=given.keepdims)
    initial = getattr(given, "initial", None)
    if initial is not None:
        result = step.op("Max" if name == "ReduceMax" else "Min", result, step.value(initial, narrow))
    return step.build.cast(result, step.dtype)


_NARROW = frozenset(map(element_of, ("bool", "int8", "uint8", "int16", "uint16")))


@operation("Any", "All")
def truth(step: Step, x: Any) -> ir.Value:
    """Whether one holds, or all do."""
    given, value = step.operation, step.value(x, "bool")
    axes = axes_of(given.axis)
    if axes == []:
        return value
    return (any_of if type(given).__name__ == "Any" else all_of)(step.build, value, axes, keepdims=given.keepdims)


@operation("CountNonzero")
def count_nonzero(step: Step, x: Any) -> ir.Value:
    """How many are not zero."""
    value = step.build.cast(step.value(x, "bool"), np.int64)
    return reduced(step, "ReduceSum", value, step.operation.axis, keepdims=False)


@operation("Var", "Std")
def variance(step: Step, x: Any) -> ir.Value:
    """The mean square of what is left without the mean."""
    value, given = step.value(x, step.dtype), step.operation
    mean = reduced(step, "ReduceMean", value, given.axis, keepdims=True)
    rest = step.op("Sub", value, mean)
    result = reduced(step, "ReduceMean", step.op("Mul", rest, rest), given.axis, keepdims=given.keepdims)
    return step.op("Sqrt", result) if type(given).__name__ == "Std" else result


@operation("Moments")
def moments(step: Step, x: Any) -> tuple[ir.Value, ir.Value]:
    """Mean and variance."""
    value, given = step.value(x, step.dtype), step.operation
    wide = step.build.cast(value, np.float32) if step.dtype.itemsize < 4 else value
    mean = reduced(step, "ReduceMean", wide, given.axes, keepdims=True)
    rest = step.op("Sub", wide, mean)
    spread = reduced(step, "ReduceMean", step.op("Mul", rest, rest), given.axes, keepdims=given.keepdims)
    if not given.keepdims:
        mean = reduced(step, "ReduceMean", wide, given.axes, keepdims=False)
    return step.build.cast(mean, step.dtype), step.build.cast(spread, step.dtype)


@operation("Average")
def average(step: Step, x: Any, weights: Any = None) -> ir.Value:
    """The mean, weighted."""
    value, axis = step.value(x, step.dtype), step.operation.axis
    if weights is None:
        return reduced(step, "ReduceMean", value, axis, keepdims=False)
    by = step.value(weights, step.dtype)
    if rank_of(by) == 1 and rank_of(value) > 1 and isinstance(axis, int):
        by = step.reshaped(by, [-1 if at == axis % rank_of(value) else 1 for at in range(rank_of(value))])
    whole = step.op("Add", step.op("Mul", value, 0.0), by)
    top = reduced(step, "ReduceSum", step.op("Mul", value, by), axis, keepdims=False)
    return step.op("Div", top, reduced(step, "ReduceSum", whole, axis, keepdims=False))


@operation("Ptp")
def ptp(step: Step, x: Any) -> ir.Value:
    """From the smallest to the largest."""
    value, given = step.value(x, step.dtype), step.operation
    ends = [reduced(step, f"Reduce{end}", value, given.axis, keepdims=given.keepdims) for end in ("Max", "Min")]
    return step.op("Sub", *ends)


@operation("Argmax", "Argmin")
def arg_extreme(step: Step, x: Any) -> ir.Value:
    """Where the first extreme is; of everything in a row if no axis is given."""
    value, given = step.value(x), step.operation
    value = step.build.cast(value, np.int32) if value.dtype == ir.DataType.BOOL else value
    axis = given.axis
    if axis is None:
        value, axis = step.op("Reshape", value, [-1]), 0
    name = "ArgMax" if type(given).__name__ == "Argmax" else "ArgMin"
    found = step.op(name, value, axis=axis, keepdims=int(given.keepdims and given.axis is not None))
    if given.axis is None and given.keepdims:
        found = step.op("Reshape", found, [1] * len(step.shape))
    return step.build.cast(typed(found, np.int64, step.shape), step.dtype)


@operation("Cumsum")
def cumsum(step: Step, x: Any) -> ir.Value:
    """Running sums; of everything in a row if no axis is given."""
    value, axis = step.value(x, step.dtype), step.operation.axis
    if axis is None:
        value, axis = step.op("Reshape", value, [-1]), 0
    return step.op("CumSum", value, step.build.constant(axis, "int64"))


@operation("Sort", "Argsort")
def sort(step: Step, x: Any) -> ir.Value:
    """The smallest first; equal ones in their order."""
    value, axis = step.value(x), step.operation.axis
    if axis is None:
        value, axis = typed(step.op("Reshape", value, [-1]), value.dtype, [None]), 0
    kind = value.dtype
    value = step.build.cast(value, np.int32) if kind in _NARROW else value
    size = step.op("Shape", value, start=axis, end=axis + 1 if axis != -1 else None)
    ordered, places = step.op("TopK", value, size, outputs=2, axis=axis, largest=0, sorted=1)
    if type(step.operation).__name__ == "Sort":
        return step.build.cast(ordered, kind)
    return step.build.cast(typed(places, np.int64, shape_of(value)), step.dtype)


@operation("TopK")
def top_k(step: Step, x: Any) -> tuple[ir.Value, ir.Value]:
    """The largest along the last axis, and where they are."""
    values, places = step.op("TopK", step.value(x), [int(step.operation.k)], outputs=2, axis=-1, largest=1, sorted=1)
    return values, step.build.cast(typed(places, np.int64, step.shape), element_of(step.results[1].dtype))


@operation("InTopK")
def in_top_k(step: Step, targets: Any, predictions: Any) -> ir.Value:
    """Whether fewer than k are larger than the target's."""
    scores = step.value(predictions)
    at = step.op("Unsqueeze", step.value(targets, "int64"), [-1])
    own = step.op("GatherElements", scores, at, axis=-1)
    larger = step.build.cast(step.op("Greater", scores, own), np.int64)
    return step.op("Less", step.op("ReduceSum", larger, [-1], keepdims=0), int(step.operation.k))


@operation("Norm")
def norm(step: Step, x: Any) -> ir.Value:
    """Of vectors, and Frobenius' of matrices."""
    value, given = step.value(x, step.dtype), step.operation
    axis, order = given.axis, given.ord
    count = rank_of(value) if axis is None else 1 if isinstance(axis, int) else len(axis)
    if order in (None, "fro") or (order == 2 and count == 1):
        return reduced(step, "ReduceL2", value, axis, keepdims=given.keepdims)
    if count > 1:
        raise step.refuse(f"norm {order!r} of matrices")
    if order == 1:
        return reduced(step, "ReduceL1", value, axis, keepdims=given.keepdims)
    size = step.op("Abs", value)
    if order in (float("inf"), float("-inf")):
        return reduced(step, "ReduceMax" if order > 0 else "ReduceMin", size, axis, keepdims=given.keepdims)
    if order == 0:
        some = step.build.cast(step.build.cast(value, np.bool_), step.dtype)
        return reduced(step, "ReduceSum", some, axis, keepdims=given.keepdims)
    powers = reduced(step, "ReduceSum", step.op("Pow", size, float(order)), axis, keepdims=given.keepdims)
    return step.op("Pow", powers, 1 / float(order))


@operation("Normalize")
def normalize(step: Step, x: Any) -> ir.Value:
    """Divided by its norm, which is no smaller than a bound."""
    value, given = step.value(x, step.dtype), step.operation
    epsilon = 1e-7 if given.epsilon is None else given.epsilon
    axis = given.axis
    if given.order == 2:
        squares = reduced(step, "ReduceSumSquare", value, axis, keepdims=True)
        return step.op("Mul", value, step.op("Reciprocal", step.op("Sqrt", step.op("Max", squares, epsilon**2))))
    powers = step.op("Pow", step.op("Abs", value), float(given.order))
    length = step.op("Pow", reduced(step, "ReduceSum", powers, axis, keepdims=True), 1 / float(given.order))
    return step.op("Div", value, step.op("Max", length, float(epsilon)))


@operation("Corrcoef")
def correlations(step: Step, x: Any) -> ir.Value:
    """Of rows with one another: products of what is left without the mean, as shares of their lengths."""
    value = step.value(x, step.dtype)
    rest = step.op("Sub", value, step.op("ReduceMean", value, [-1]))
    if rank_of(value) == 1:
        rest = step.op("Unsqueeze", rest, [0])
    products = step.op("MatMul", rest, step.op("Transpose", rest, perm=[1, 0]))
    length = step.op("Sqrt", step.op("ReduceSum", step.op("Mul", rest, rest), [-1]))
    shares = step.op("Div", step.op("Div", products, length), step.op("Transpose", length, perm=[1, 0]))
    found = step.op("Clip", shares, step.value(-1, step.dtype), step.value(1, step.dtype))
    return step.op("Squeeze", found) if rank_of(value) == 1 else found
