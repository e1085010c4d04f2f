"""What NumPy's functions are in a graph."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.sklearn.array import Array, Symbolic, common, lifted
from entrepot.exporters.sklearn.inside import LIKE
from entrepot.exporters.sklearn.rearranging import REARRANGING
from entrepot.exporters.sklearn.shapes import broadcast, product
from entrepot.exporters.sklearn.summaries import SUMMARIES
from entrepot.exporters.sklearn.transcendental import COMPOSED
from entrepot.ir.errors import ConversionError

_UNARY = {
    "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos", "tanh": "Tanh", "expit": "Sigmoid",
}  # fmt: skip
"""Whose results are floating-point numbers."""
_SAME = {
    "negative": "Neg", "absolute": "Abs", "fabs": "Abs", "floor": "Floor", "ceil": "Ceil", "rint": "Round",
    "sign": "Sign",
}  # fmt: skip
"""Whose results are of the operand's type."""
_ARITHMETIC = {"add": "Add", "subtract": "Sub", "multiply": "Mul", "maximum": "Max", "minimum": "Min"}
_COMPARISONS = {"equal": "Equal", "less": "Less", "less_equal": "LessOrEqual", "greater": "Greater",
                "greater_equal": "GreaterOrEqual"}  # fmt: skip
_LOGICAL = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor",
            "bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor"}  # fmt: skip
_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
               "logical_or": "any"}  # fmt: skip


def universal(build: Builder, ufunc: Any, operands: Sequence[Any], options: dict[str, Any]) -> Any:
    """One of NumPy's or SciPy's elementwise functions.

    Raises:
        ConversionError: It is none of those that a graph has.
    """
    name = ufunc.__name__
    for test, write in _KINDS:
        if test(name):
            result = write(build, name, operands)
            return result.astype(options["dtype"]) if options.get("dtype") is not None else result
    raise ConversionError(
        f"np.{name} cannot be written into a graph", hint="register a converter, or use other functions"
    )


def reduce_with(name: str, x: Array, axis: Any = 0, keepdims: bool = False, **_: Any) -> Array:
    """``np.add.reduce`` and its like."""
    if name not in _REDUCTIONS:
        raise ConversionError(f"np.{name}.reduce cannot be written into a graph", hint="use other functions")
    return FUNCTIONS[_REDUCTIONS[name]](x, axis=axis, keepdims=bool(keepdims))


def floating(x: Array) -> Array:
    """As NumPy's functions of floating-point numbers take it."""
    return x if x.dtype.kind == "f" else x.astype(np.float64)


def _float_function(build: Builder, name: str, operands: Sequence[Any]) -> Array:
    return floating(operands[0]).op(_UNARY[name])


def _same(build: Builder, name: str, operands: Sequence[Any]) -> Array:
    x = operands[0]
    if x.dtype.kind != "f" and name in ("floor", "ceil", "rint"):
        return x if name != "rint" else floating(x)
    return x.op(_SAME[name])


def _composed(build: Builder, name: str, operands: Sequence[Any]) -> Array:
    arrays, *_ = common(build, operands)
    return COMPOSED[name](*map(floating, arrays))


def _arithmetic(build: Builder, name: str, operands: Sequence[Any]) -> Array:
    (x, y), dtype, shape = common(build, operands)
    if dtype.kind != "b":
        x, y = _unlike_scalars(x, y)
        return x.op(_ARITHMETIC[name], y, shape=shape)
    if name in ("add", "maximum", "multiply", "minimum"):
        return x.op("Or" if name in ("add", "maximum") else "And", y, shape=shape)
    raise ConversionError(f"np.{name} of booleans is not defined", hint="convert them to integers")


def _divide(build: Builder, name: str, operands: Sequence[Any]) -> Array:
    (x, y), _, shape = common(build, operands)
    x, y = _unlike_scalars(floating(x), floating(y))
    return x.op("Div", y, shape=shape)


def _unlike_scalars(x: Array, y: Array) -> tuple[Array, Array]:
    """A constant that scales a matrix, once for each column.

    onnxruntime (1.31) moves a scalar that scales operands or results of MatMul into an attribute, in single precision.
    """
    return _widened(x, y), _widened(y, x)


def _widened(x: Array, other: Array) -> Array:
    width = other.shape[-1] if other.ndim > 1 else None
    if x.dtype != np.float64 or x.ndim or x.value.const_value is None or width in (None, 1):
        return x
    return lifted(x.build, np.full(width or 1, x.value.const_value.numpy()))


def _power(build: Builder, name: str, operands: Sequence[Any]) -> Array:
    if isinstance(operands[1], int | float) and operands[1] == 2:
        return operands[0] * operands[0]
    (x, y), _, shape = common(build, operands)
    return x.op("Pow", y, shape=shape)


def _remainder(build: Builder, name: str, operands: Sequence[Any]) -> Any:
    (x, y), dtype, shape = common(build, operands)
    if dtype.kind != "f":
        return x - floor_divide(x, y) * y if name == "remainder" else x - (x / y).astype(dtype) * y
    left = x.op("Mod", y, fmod=1, shape=shape)
    return left if name == "fmod" else np.where((left != 0) & ((left < 0) != (y < 0)), left + y, left)


def floor_divide(x: Array, y: Any) -> Array:
    """``x // y``."""
    (x, y), dtype, _ = common(x.build, [x, y])
    return np.floor(floating(x) / floating(y)).astype(dtype)


def _compare(build: Builder, name: str, operands: Sequence[Any]) -> Array:
    (x, y), dtype, shape = common(build, operands)
    if dtype.kind == "b":
        x, y = x.astype(np.int64), y.astype(np.int64)
    return x.op(_COMPARISONS[name], y, dtype=bool, shape=shape)


def _logical(build: Builder, name: str, operands: Sequence[Any]) -> Array:
    (x, y), _, shape = common(build, operands)
    return x.astype(bool).op(_LOGICAL[name], y.astype(bool), shape=shape)


def _not(build: Builder, name: str, operands: Sequence[Any]) -> Array:
    return operands[0].astype(bool).op("Not")


def _isnan(build: Builder, name: str, operands: Sequence[Any]) -> Array:
    x = operands[0]
    return x.op("IsNaN", dtype=bool) if x.dtype.kind == "f" else x.op("Equal", x, dtype=bool).op("Not")


def matmul(build: Builder, name: str, operands: Sequence[Any]) -> Array:
    """A matrix product."""
    (x, y), *_ = common(build, operands)
    if y.ndim == 1:
        return matmul(build, name, [x, y[:, None]])[..., 0]
    return x.op("MatMul", y, shape=product(x.shape, y.shape))


def _among(table: Any) -> Callable[[str], bool]:
    return lambda name: name in table


_KINDS: list[tuple[Callable[[str], bool], Callable[[Builder, str, Sequence[Any]], Any]]] = [
    (_among(_UNARY), _float_function),
    (_among(_SAME), _same),
    (_among(COMPOSED), _composed),
    (_among(_ARITHMETIC), _arithmetic),
    (_among(("divide", "true_divide")), _divide),
    (_among(("power", "float_power")), _power),
    (_among(("remainder", "fmod")), _remainder),
    (_among(("floor_divide",)), lambda build, name, operands: floor_divide(*common(build, operands)[0])),
    (_among(_COMPARISONS), _compare),
    (_among(("not_equal",)), lambda build, name, operands: _compare(build, "equal", operands).op("Not")),
    (_among(_LOGICAL), _logical),
    (_among(("logical_not", "invert")), _not),
    (_among(("isnan",)), _isnan),
    (_among(("isinf",)), lambda build, name, operands: np.abs(operands[0]) == np.inf),
    (_among(("isfinite",)), lambda build, name, operands: np.abs(operands[0]) < np.inf),
    (_among(("matmul", "vecdot")), matmul),
    (_among(("conjugate", "positive")), lambda build, name, operands: operands[0]),
]


def _reduction(op_type: str, keeps: bool = True) -> Callable[..., Array]:
    def write(x: Array, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **_: Any) -> Array:
        if x.dtype.kind in "bu" or (x.dtype.kind == "i" and x.dtype.itemsize < 8):
            x = x.astype(np.int64 if keeps else x.dtype)
        return x.reduce(op_type, axis, keepdims is True)

    return write


def _extreme(op_type: str) -> Callable[..., Array]:
    """In users' functions not a number where one is none, which onnxruntime (1.31) passes over."""
    plain = _reduction(op_type)

    def write(x: Array, axis: Any = None, out: Any = None, keepdims: Any = False, **_: Any) -> Any:
        found = plain(x, axis, keepdims=keepdims)
        if LIKE.get() is None or x.dtype.kind != "f":
            return found
        return np.where(np.any(np.isnan(x), axis=axis, keepdims=keepdims is True), np.nan, found)

    return write


def _mean(x: Array, axis: Any = None, keepdims: Any = False, **_: Any) -> Array:
    return floating(x).reduce("ReduceMean", axis, keepdims is True)


def _any(x: Array, axis: Any = None, keepdims: Any = False, **_: Any) -> Any:
    return x.astype(bool).astype(np.int64).reduce("ReduceSum", axis, keepdims is True) > 0


def _all(x: Array, axis: Any = None, keepdims: Any = False, **_: Any) -> Any:
    return ~_any(~x.astype(bool), axis, keepdims)


def _position(op_type: str) -> Callable[..., Array]:
    def write(x: Array, axis: Any = None, **_: Any) -> Any:
        x, axis = (x.ravel(), 0) if axis is None else (x, int(axis) % x.ndim)
        x = x.astype(np.int64) if x.dtype.kind == "b" else x
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        found = x.op(op_type, axis=axis, keepdims=0, dtype=np.int64, shape=shape)
        if LIKE.get() is None or x.dtype.kind != "f":
            return found
        lost: Symbolic = np.isnan(x)
        first = lost.astype(np.int64).op("ArgMax", axis=axis, keepdims=0, dtype=np.int64, shape=shape)
        return np.where(np.any(lost, axis=axis), first, found)

    return write


def _where(condition: Any, x: Any, y: Any) -> Array:
    build = next(item for item in (condition, x, y) if isinstance(item, Array)).build
    (x, y), dtype, _ = common(build, [x, y])
    (condition,), *_ = common(build, [condition])
    shape = broadcast([condition.shape, x.shape, y.shape])
    if dtype.kind == "b":  # of which onnxruntime has no Where
        return (condition & x) | (~condition & y)
    return condition.astype(bool).op("Where", x, y, dtype=dtype, shape=shape)


def _clip(x: Array, a_min: Any = None, a_max: Any = None, **_: Any) -> Array:
    x = x if a_min is None else np.maximum(x, a_min)
    return x if a_max is None else np.minimum(x, a_max)


def concatenate(arrays: Sequence[Any], axis: int = 0, **_: Any) -> Array:
    """Arrays one after the other along an axis."""
    build = next(item for item in arrays if isinstance(item, Array)).build
    made = common(build, arrays)[0]
    axis %= made[0].ndim
    if len(made) == 1:
        return made[0]
    sizes = [x.shape[axis] for x in made]
    shape = list(broadcast([[*x.shape[:axis], 1, *x.shape[axis + 1 :]] for x in made]))
    shape[axis] = None if None in sizes else sum(size or 0 for size in sizes)
    return made[0].op("Concat", *made[1:], axis=axis, shape=shape)


def _stack(arrays: Sequence[Any], axis: int = 0, **_: Any) -> Array:
    return concatenate([x[None] if axis == 0 else x.expand(axis) for x in arrays], axis)


def _hstack(arrays: Sequence[Any], **_: Any) -> Array:
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1)


def _column_stack(arrays: Sequence[Any]) -> Array:
    return concatenate([x[:, None] if x.ndim == 1 else x for x in arrays], 1)


def _cumsum(x: Array, axis: int | None = None, **_: Any) -> Array:
    x, axis = (x.ravel(), 0) if axis is None else (x, axis)
    return x.op("CumSum", np.array(axis, np.int64))


def _sort(x: Array, axis: int = -1, **_: Any) -> Array:
    axis %= x.ndim
    return top(x, x.shape[axis] or 0, axis, largest=False)[0]


def top(x: Array, count: int, axis: int = -1, *, largest: bool) -> tuple[Array, Array]:
    """The largest or the smallest elements along an axis in order, and where they are."""
    axis %= x.ndim
    values, places = x.build.op("TopK", x.value, [count], axis=axis, largest=int(largest), outputs=2)
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return Array(x.build, values, x.dtype, shape), Array(x.build, places, np.int64, shape)


def along(x: Array, indices: Array, axis: int) -> Array:
    """``np.take_along_axis``."""
    return x.op("GatherElements", indices, axis=axis, shape=indices.shape)


def _einsum(equation: str, *operands: Any, **_: Any) -> Array:
    build = next(item for item in operands if isinstance(item, Array)).build
    made = common(build, operands)[0]
    left, _arrow, right = equation.replace(" ", "").partition("->")
    sizes: dict[str, int | None] = {}
    for letters, x in zip(left.split(","), made, strict=True):
        sizes |= {letter: size for letter, size in zip(letters, x.shape, strict=True) if size is not None}
    return made[0].op("Einsum", *made[1:], equation=equation, shape=[sizes.get(letter) for letter in right])


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    if ord == 1:
        return np.sum(np.abs(x), axis=axis, keepdims=keepdims)
    if ord == np.inf:
        return np.max(np.abs(x), axis=axis, keepdims=keepdims)
    return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))


def _dot(x: Any, y: Any, **_: Any) -> Array:
    build = (x if isinstance(x, Array) else y).build
    return matmul(build, "matmul", [x, y])


def _is_close(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    near: Array = (np.abs(x - y) <= atol + rtol * np.abs(y)) & np.isfinite(y)
    found = near | (x == y)
    return found | (np.isnan(x) & np.isnan(y)) if equal_nan else found


def _filled(x: Array, value: Any, dtype: Any = None, **_: Any) -> Array:
    number = lifted(x.build, value, x.dtype if dtype is None else dtype)
    return Array(x.build, x.build.op("Expand", number.value, x.build.shape(x.value)), number.dtype, x.shape)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": _reduction("ReduceSum"), "prod": _reduction("ReduceProd"), "mean": _mean,
    "max": _extreme("ReduceMax"), "min": _extreme("ReduceMin"), "amax": _extreme("ReduceMax"),
    "amin": _extreme("ReduceMin"), "any": _any, "all": _all,
    "argmax": _position("ArgMax"), "argmin": _position("ArgMin"), "where": _where, "clip": _clip,
    "concatenate": concatenate, "stack": _stack, "hstack": _hstack, "column_stack": _column_stack,
    "vstack": lambda arrays, **_: concatenate(arrays, 0), "cumsum": _cumsum, "sort": _sort, "einsum": _einsum,
    "take": lambda x, indices, axis=None, **_: (x.ravel() if axis is None else x).take(indices, axis or 0),
    "take_along_axis": along, "norm": _norm, "dot": _dot,
    "reshape": lambda x, shape, **_: x.reshape(shape), "ravel": lambda x, **_: x.ravel(),
    "transpose": lambda x, axes=None: x.transpose(*axes or ()),
    "expand_dims": lambda x, axis: x.expand(axis),
    "ndim": lambda x: x.ndim, "shape": lambda x: x.shape,
    "round": lambda x, decimals=0, **_: np.rint(x * 10.0**decimals) / 10.0**decimals if decimals else np.rint(x),
    "nan_to_num": lambda x, nan=0.0, **_: np.where(np.isnan(x), nan, x),
    "copy": lambda x, **_: copy.copy(x),
    "isclose": _is_close, **REARRANGING, **SUMMARIES,
    "zeros_like": lambda x, dtype=None, **_: _filled(x, 0, dtype),
    "ones_like": lambda x, dtype=None, **_: _filled(x, 1, dtype), "full_like": _filled,
}  # fmt: skip
"""By name."""
