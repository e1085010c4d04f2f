"""Two-sided arithmetic, comparisons, logic, and elementwise functions of several inputs.

Before version 7, B has the shape of A, or lies in it when ``broadcast`` is set: it has one element, or its shape is a
contiguous part of A's that starts at ``axis``, or ends where A's ends. Sizes of 1 are not stretched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from tests.judges.early.use import Array, Use, meaning


def aligned(use: Use, a: Array, b: Array) -> Array:
    """B with as many axes as A."""
    if not use["broadcast"]:
        use.needs(a.shape == b.shape, f"shapes {a.shape} and {b.shape} without broadcast=1")
        return b
    if b.size == 1 and b.ndim <= a.ndim:
        return b.reshape((1,) * a.ndim)
    start = a.ndim - b.ndim if use["axis"] is None else use["axis"]
    use.needs(0 <= start <= a.ndim - b.ndim, f"shape {b.shape} does not fit into {a.shape} at axis {start}")
    use.needs(a.shape[start : start + b.ndim] == b.shape, f"shape {b.shape} is not that of {a.shape} at axis {start}")
    return b.reshape((1,) * start + b.shape + (1,) * (a.ndim - b.ndim - start))


def quotient(a: Array, b: Array) -> Array:
    """Integers are rounded toward zero."""
    if a.dtype.kind not in "iu":
        return np.asarray(a / b)
    floored = a // b
    return np.asarray(floored + ((a - floored * b != 0) & ((a < 0) != (b < 0))), a.dtype)


TWO_SIDED: dict[str, Callable[..., Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": quotient,
    "Pow": np.power,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "Equal": np.equal,
    "Greater": np.greater,
    "Less": np.less,
}


@meaning("Add", "Sub", "Mul", "Div", since=(1, 6))
@meaning("Pow", "And", "Or", "Xor", "Equal", "Greater", "Less")
def two_sided(use: Use, a: Array, b: Array) -> Array:
    """An operation on two tensors; the result has the shape of the first."""
    return TWO_SIDED[use.node.op_type](a, aligned(use, a, b))


SEVERAL: dict[str, Callable[..., Array]] = {
    "Max": np.maximum,
    "Min": np.minimum,
    "Sum": np.add,
    "Mean": np.add,
}


@meaning("Max", "Min", "Sum", "Mean", since=(1, 6))
def several(use: Use, *values: Array) -> Array:
    """An operation on any number of tensors of one shape."""
    use.needs(bool(values), "no input")
    use.needs(len({value.shape for value in values}) == 1, f"shapes {[value.shape for value in values]}")
    total = functools.reduce(SEVERAL[use.node.op_type], values)
    return total / np.array(len(values), total.dtype) if use.node.op_type == "Mean" else total


@meaning("Not")
def negation(_use: Use, x: Array) -> Array:
    """True where false."""
    return np.logical_not(x)


@meaning("MatMul")
def product(_use: Use, a: Array, b: Array) -> Array:
    """As numpy.matmul."""
    return np.asarray(np.matmul(a, b))


@meaning("Gemm", since=(1, 6))
def gemm(use: Use, a: Array, b: Array, c: Array) -> Array:
    """alpha * A' * B' + beta * C, where C is stretched only if ``broadcast`` is set."""
    use.needs(a.ndim == 2 and b.ndim == 2, f"ranks {a.ndim} and {b.ndim}")
    whole = (a.T if use["transA"] else a) @ (b.T if use["transB"] else b)
    use.needs(bool(use["broadcast"]) or c.shape == whole.shape, f"C is {c.shape} without broadcast=1")
    stretched = np.broadcast_to(c, whole.shape)
    return (use["alpha"] * whole + use["beta"] * stretched).astype(a.dtype)
