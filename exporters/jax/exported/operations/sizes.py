"""Sizes: integers that are known while a program is traced, or expressions over those that vary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from entrepot.exporters.jax.exported.operation import Operation, Unsure, is_numbers, numbers
from entrepot.exporters.jax.exported.table import means, on_numbers


@means("get_dimension_size")
def get_dimension_size(operation: Operation, x: Any) -> np.ndarray:
    """A size."""
    return _like(x.shape[operation.number("dimension")])


def _like(value: Any) -> np.ndarray:
    found = np.empty((), object)
    found[()] = value
    return found


def _each(function: Callable[..., Any]) -> Callable[..., Any]:
    def applied(operation: Operation, *operands: Any) -> np.ndarray:
        parts = [numbers(each) for each in operands]
        found = np.empty(np.shape(operands[0]), object)
        results = [_wrapped(operation, _sure(function, *each)) for each in zip(*parts, strict=True)]
        found.reshape(-1)[:] = results
        return found

    return applied


def _sure(function: Callable[..., Any], *values: Any) -> Any:
    try:
        return function(*values)
    except jax.errors.InconclusiveDimensionOperation as error:
        raise Unsure from error


def _wrapped(operation: Operation, value: Any) -> Any:
    """A result within its type: numbers wrap round."""
    if not isinstance(value, int) or operation.dtype.kind != "i":
        return value
    bits = 8 * operation.dtype.itemsize
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def _divided(x: Any, y: Any) -> Any:
    if isinstance(x, int) and isinstance(y, int):
        return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else -1
    if not (x >= 0 and y > 0):
        raise Unsure
    return x // y


def _remainder(x: Any, y: Any) -> Any:
    if isinstance(x, int) and isinstance(y, int):
        return x - _divided(x, y) * y if y else x
    if not (x >= 0 and y > 0):
        raise Unsure
    return x % y


def _sign(x: Any) -> int:
    return 1 if x > 0 else 0 if x == 0 else -1


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y,
    "negate": lambda x: -x, "sign": _sign, "abs": lambda x: x if x >= 0 else -x,
    "maximum": max, "minimum": min,
    "divide": _divided, "remainder": _remainder, "not": lambda x: not x if isinstance(x, bool) else ~x,
    "xor": lambda x, y: x ^ y, "convert": lambda x: x,
}  # fmt: skip
for _name, _function in _FUNCTIONS.items():
    on_numbers(_name)(_each(_function))


@on_numbers("compare")
def compare(operation: Operation, x: Any, y: Any) -> np.ndarray:
    """A comparison, where every size gives the same."""
    function = {
        "EQ": lambda x, y: x == y, "NE": lambda x, y: x != y, "LT": lambda x, y: x < y,
        "LE": lambda x, y: x <= y, "GT": lambda x, y: x > y, "GE": lambda x, y: x >= y,
    }[operation.word("comparison_direction")]  # fmt: skip
    result: np.ndarray = _each(function)(operation, x, y)
    return result


@on_numbers("and", "or")
def logical(operation: Operation, x: Any, y: Any) -> Any:
    """What one of two says may not matter."""
    if operation.dtype != np.bool_ or np.ndim(x):
        raise Unsure
    decisive = operation.name == "or"
    known = [numbers(each)[0] for each in (x, y) if is_numbers(each)]
    if decisive in known:
        return _like(decisive)
    if len(known) == 2:
        return _like(not decisive)
    raise Unsure


@on_numbers("select")
def select(operation: Operation, condition: Any, x: Any, y: Any) -> Any:
    """One of two."""
    if not is_numbers(condition) or condition.ndim:
        raise Unsure
    chosen = x if numbers(condition)[0] else y
    numbers(chosen)
    return chosen


@on_numbers("clamp")
def clamp(operation: Operation, low: Any, x: Any, high: Any) -> Any:
    """Between two."""
    least = _each(_FUNCTIONS["maximum"])(operation, x, low)
    return _each(_FUNCTIONS["minimum"])(operation, least, high)


def _known(value: Any) -> np.ndarray:
    numbers(value)
    return np.asarray(value, object)


@on_numbers("reshape")
def reshaped(operation: Operation, x: Any) -> np.ndarray:
    """Sizes in another shape."""
    return _known(x).reshape(operation.shape)


@on_numbers("broadcast_in_dim")
def repeated(operation: Operation, x: Any) -> np.ndarray:
    """Sizes repeated along axes."""
    shape, axes = operation.shape, operation.integers("broadcast_dimensions")
    own = [x.shape[axes.index(axis)] if axis in axes else 1 for axis in range(len(shape))]
    return np.broadcast_to(_known(x).reshape(own), shape)


@on_numbers("concatenate")
def concatenate(operation: Operation, *operands: Any) -> np.ndarray:
    """Sizes behind one another."""
    return np.concatenate([*map(_known, operands)], operation.number("dimension"))


@on_numbers("slice")
def sliced(operation: Operation, x: Any) -> np.ndarray:
    """Some of them."""
    names = ("start_indices", "limit_indices", "strides")
    bounds = zip(*(operation.integers(name) for name in names), strict=True)
    return _known(x)[tuple(slice(*each) for each in bounds)]
