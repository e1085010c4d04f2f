"""Reductions, and what looks for the largest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.judges.early.use import Array, CannotJudgeError, Use, meaning


def _log_sum_exp(x: Array, axes: tuple[int, ...]) -> Array:
    wide = x.astype(np.float64)
    top = np.max(wide, axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, 0)
    return np.asarray(np.log(np.exp(wide - shift).sum(axes, keepdims=True)) + shift)


def _extreme(largest: bool) -> Callable[[Array, tuple[int, ...]], Array]:
    def reduce(x: Array, axes: tuple[int, ...]) -> Array:
        if x.dtype.kind == "f":
            nothing: float = -np.inf if largest else np.inf
        else:
            nothing = np.iinfo(x.dtype).min if largest else np.iinfo(x.dtype).max
        return np.asarray((np.max if largest else np.min)(x, axes, keepdims=True, initial=nothing))

    return reduce


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
    count = int(np.prod([x.shape[axis] for axis in axes]))
    if x.dtype.kind == "f":
        return np.asarray(x.sum(axes, keepdims=True, dtype=np.float64) / count)
    total = x.sum(axes, keepdims=True)
    if (total % count).any():
        raise CannotJudgeError("how the mean of integers is rounded is not said")
    return np.asarray(total // count)


REDUCTIONS: dict[str, Callable[[Array, tuple[int, ...]], Array]] = {
    "ReduceL1": lambda x, axes: np.abs(x).sum(axes, keepdims=True),
    "ReduceL2": lambda x, axes: np.sqrt((x.astype(np.float64) ** 2).sum(axes, keepdims=True)),
    "ReduceLogSum": lambda x, axes: np.log(x.sum(axes, keepdims=True, dtype=np.float64)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _extreme(largest=True),
    "ReduceMean": _mean,
    "ReduceMin": _extreme(largest=False),
    "ReduceProd": lambda x, axes: x.prod(axes, keepdims=True),
    "ReduceSum": lambda x, axes: x.sum(axes, keepdims=True),
    "ReduceSumSquare": lambda x, axes: (x * x).sum(axes, keepdims=True),
}


@meaning(*REDUCTIONS)
def reduce(use: Use, x: Array) -> Array:
    """Over named axes, counted from the front, or over all of them."""
    axes = tuple(range(x.ndim)) if use["axes"] is None else use.axes(x.ndim)
    result = REDUCTIONS[use.node.op_type](x, axes).astype(x.dtype)
    return result if use["keepdims"] else result.squeeze(axes)


@meaning("ArgMax", "ArgMin")
def position(use: Use, x: Array) -> Array:
    """The index of the largest or smallest; which one of several equal ones is not said, and the first is usual."""
    if not x.ndim:
        raise CannotJudgeError("what the axis of a scalar is")
    axis = use.axis(x.ndim)
    find = np.argmax if use.node.op_type == "ArgMax" else np.argmin
    return np.asarray(find(x, axis, keepdims=bool(use["keepdims"])), np.int64)


@meaning("TopK")
def top(use: Use, x: Array) -> tuple[Array, Array]:
    """The k largest, in order; among equals the lower index first. -1, the default axis, is the last one."""
    axis = x.ndim - 1 if use["axis"] == -1 else use.axis(x.ndim)
    use.needs(1 <= use["k"] <= x.shape[axis], f"k={use['k']} of {x.shape[axis]}")
    if np.isnan(x).any():
        raise CannotJudgeError("where NaN is sorted")
    order = np.argsort(-x, axis, kind="stable").take(range(use["k"]), axis)
    return np.take_along_axis(x, order, axis), order.astype(np.int64)
