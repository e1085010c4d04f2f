"""The few operators that shape arithmetic is made of, on NumPy arrays, at every opset they exist.

They only decide whether a value is known, so a form that is not covered raises, and the value counts as unknown.
Where an operator moved an attribute to an input, both spellings are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

Array: TypeAlias = np.ndarray[Any, Any]


def _axes(given: Array | None, attribute: Sequence[int] | None) -> tuple[int, ...] | None:
    if given is not None:
        return tuple(int(axis) for axis in given)
    return None if attribute is None else tuple(attribute)


def _squeeze(x: Array, given: Array | None = None, *, axes: Sequence[int] | None = None) -> Array:
    return np.squeeze(x, _axes(given, axes))


def _unsqueeze(x: Array, given: Array | None = None, *, axes: Sequence[int] | None = None) -> Array:
    return np.expand_dims(x, _axes(given, axes) or ())


def _slice(
    x: Array,
    start: Array | None = None,
    end: Array | None = None,
    axis: Array | None = None,
    step: Array | None = None,
    *,
    starts: Sequence[int] = (),
    ends: Sequence[int] = (),
    axes: Sequence[int] | None = None,
) -> Array:
    first, last = (starts, ends) if start is None or end is None else (start.tolist(), end.tolist())
    chosen = _axes(axis, axes) or range(len(first))
    steps = [1] * len(first) if step is None else step.tolist()
    for axis_, a, b, c in zip(chosen, first, last, steps, strict=True):
        x = np.take(x, slice_positions(x.shape[axis_], a, b, c), axis_)
    return x


def slice_positions(size: int, start: int, end: int, step: int) -> Array:
    """The elements that ``Slice`` takes of an axis; backwards it clamps to the first and last, unlike Python.

    Raises:
        ValueError: It goes backwards to the largest number: runtimes read that as "to the beginning".
    """
    if step < 0 and end >= (1 << 31) - 1:
        raise ValueError("slicing backwards to the largest number")
    low, high = (0, size) if step > 0 else (-1, size - 1)
    start, end = (bound + size if bound < 0 else bound for bound in (start, end))
    start = min(max(start, 0), high)
    return np.arange(start, min(max(end, low), high), step, dtype=np.int64)


def _reshape(x: Array, shape: Array | Sequence[int], *, allowzero: int = 0) -> Array:
    dims = [
        x.shape[axis] if dim == 0 and not allowzero else int(dim) for axis, dim in enumerate(np.asarray(shape).tolist())
    ]
    return x.reshape(dims)


def _divide(a: Array, b: Array) -> Array:
    if np.issubdtype(a.dtype, np.integer):  # towards zero, as C does
        return (np.sign(a) * np.sign(b) * (abs(a) // abs(b))).astype(a.dtype)
    return np.asarray(a / b)


def _constant_of_shape(shape: Array, *, value: Any = None) -> Array:
    fill = np.zeros(1, np.float32) if value is None else value.numpy()
    return np.full(shape.tolist(), fill[0], fill.dtype)


def _cast(x: Array, *, to: int, saturate: int = 1) -> Array:
    dtype = ir.DataType(to)
    if not saturate or dtype.bitwidth < 8 or dtype.name.startswith("FLOAT8") or dtype == ir.DataType.STRING:
        raise ValueError("rounding rules of narrow types are not folded")
    return x.astype(dtype.numpy())


def _concat(*xs: Array, axis: int = 1) -> Array:
    return np.concatenate(xs, axis)


def _gather(x: Array, indices: Array, *, axis: int = 0) -> Array:
    return np.take(x, indices, axis)


def _transpose(x: Array, *, perm: Sequence[int] | None = None) -> Array:
    return np.transpose(x, perm)


def _range(start: Array, limit: Array, delta: Array) -> Array:
    return np.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)


def _reduce(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(
        x: Array,
        given: Array | None = None,
        *,
        axes: Sequence[int] | None = None,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Array:
        chosen = _axes(given, axes)
        if not chosen and noop_with_empty_axes:
            return x
        return np.asarray(function(x, axis=chosen or None, keepdims=bool(keepdims), dtype=x.dtype))

    return reduce


FOLDS: Mapping[str, Callable[..., Any]] = {
    "Identity": lambda x: x,
    "Cast": _cast,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Gather": _gather,
    "Range": _range,
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Expand": lambda x, shape: np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape.tolist()))),
    "Where": np.where,
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": _divide,
    "Mod": lambda x, y, fmod=0: np.fmod(x, y) if fmod else np.mod(x, y),
    "Pow": lambda x, y: np.power(x, y).astype(x.dtype),
    "Neg": np.negative,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Abs": np.abs,
    "Sqrt": np.sqrt,
    "Equal": np.equal,
    "Less": np.less,
    "Greater": np.greater,
    "LessOrEqual": np.less_equal,
    "GreaterOrEqual": np.greater_equal,
    "And": np.logical_and,
    "Xor": np.logical_xor,
    "Or": np.logical_or,
    "Not": np.logical_not,
    "ReduceSum": _reduce(np.sum),
    "ReduceProd": _reduce(np.prod),
    "Max": lambda *xs: np.maximum.reduce(np.broadcast_arrays(*xs)),
    "Min": lambda *xs: np.minimum.reduce(np.broadcast_arrays(*xs)),
}


def elements_made(op_type: str, inputs: Sequence[Array | None]) -> int:
    """How many elements a result has at most, known before any memory is taken for it."""
    given = [x for x in inputs if x is not None]
    special = _MADE.get(op_type)
    return math.prod(np.broadcast_shapes(*(x.shape for x in given))) if special is None else special(*given)


def _largest(*xs: Array) -> int:
    return max(x.size for x in xs)


_KEEPING = ("Identity", "Cast", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze", "ReduceSum", "ReduceProd")
_MADE: Mapping[str, Callable[..., int]] = dict.fromkeys(_KEEPING, _largest) | {
    "ConstantOfShape": lambda shape: math.prod(shape.tolist()),
    "Range": lambda start, limit, delta: math.ceil((limit.item() - start.item()) / delta.item()),
    "Expand": lambda x, shape: math.prod(np.broadcast_shapes(x.shape, tuple(shape.tolist()))),
    "Concat": lambda *xs: sum(x.size for x in xs),
    "Gather": lambda x, indices: x.size * indices.size,
}
"""Those that do not broadcast their operands."""
