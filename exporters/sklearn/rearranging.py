"""NumPy's functions that move, repeat, cut and join, and those that choose by conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Array
from entrepot.ir.errors import ConversionError


def known_size(x: Array, axis: int) -> int:
    """The size of an axis of columns.

    Raises:
        ConversionError: It is that of rows.
    """
    size = x.shape[axis]
    if size is None:
        raise ConversionError("what moves or counts rows cannot be written into a graph", hint="axis=1")
    return size


def _taken(x: Array, places: Callable[[Any], Any], axis: int) -> Array:
    """The positions that a function of NumPy makes of the positions as they are."""
    return x.take(places(np.arange(known_size(x, axis))), axis)


def _squeeze(x: Array, axis: Any = None) -> Array:
    axes = [at for at, size in enumerate(x.shape) if size == 1] if axis is None else list(np.atleast_1d(axis) % x.ndim)
    return x.op("Squeeze", axes, shape=[size for at, size in enumerate(x.shape) if at not in axes]) if axes else x


def _flip(x: Array, axis: Any = None) -> Array:
    for at in range(x.ndim) if axis is None else np.atleast_1d(axis):
        x = x[(*[slice(None)] * (int(at) % x.ndim), slice(None, None, -1))]
    return x


def _roll(x: Array, shift: int, axis: Any = None) -> Array:
    if axis is None:
        raise ConversionError("np.roll of all axes cannot be written into a graph", hint="axis=1")
    return _taken(x, lambda at: np.roll(at, shift), axis % x.ndim)


def _split(function: Callable[..., Any], x: Array, sections: Any, axis: int = 0) -> list[Array]:
    parts = function(np.arange(known_size(x, axis % x.ndim)), sections)
    return [x.take(part, axis) for part in parts]


def _repeat(x: Array, repeats: Any, axis: Any = None) -> Array:
    if axis is None:
        raise ConversionError("np.repeat of all axes cannot be written into a graph", hint="axis=1")
    return _taken(x, lambda at: np.repeat(at, repeats), axis % x.ndim)


def _tile(x: Any, reps: Any) -> Any:
    counts = [int(each) for each in np.atleast_1d(reps)]
    while x.ndim < len(counts):
        x = x.expand(0)
    for axis, count in zip(range(x.ndim)[::-1], counts[::-1], strict=False):
        x = np.concatenate([x] * count, axis) if count > 1 else x
    return x


def _append(x: Any, values: Any, axis: Any = None) -> Any:
    if axis is None:
        raise ConversionError("np.append of all axes cannot be written into a graph", hint="axis=1")
    return np.concatenate([x, values], axis)


def _insert(x: Array, place: Any, values: Any, axis: Any = None) -> Any:
    if axis is None or axis % x.ndim != 1 or x.ndim != 2 or np.ndim(place):
        raise ConversionError("np.insert of anything but columns cannot be written into a graph", hint="axis=1")
    at = place if place >= 0 else known_size(x, 1) + place
    values = values if isinstance(values, Array) else np.asarray(values)
    column = x.rows(values.ravel()) if not isinstance(values, Array) else values
    column = column.expand(1) if column.ndim == 1 else column
    return np.concatenate([x[:, :at], column, x[:, at:]], 1)


def _swapped(x: Array, one: int, two: int) -> Array:
    order = list(range(x.ndim))
    order[one], order[two] = order[two], order[one]
    return x.transpose(order)


def _moved(x: Array, source: Any, target: Any) -> Array:
    pairs = zip(np.atleast_1d(target) % x.ndim, np.atleast_1d(source) % x.ndim, strict=True)
    places = {int(to): int(at) for to, at in pairs}
    rest = iter(axis for axis in range(x.ndim) if axis not in places.values())
    return x.transpose([places[axis] if axis in places else next(rest) for axis in range(x.ndim)])


def _select(conditions: Sequence[Any], choices: Sequence[Any], default: Any = 0) -> Any:
    found = default
    for condition, choice in zip(conditions[::-1], choices[::-1], strict=True):
        found = np.where(condition, choice, found)
    return found


def _piecewise(x: Any, conditions: Sequence[Any], functions: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
    conditions, found = list(conditions), np.zeros_like(x)
    if len(functions) == len(conditions) + 1:
        conditions.append(~np.any(np.stack(conditions), axis=0))
    for condition, function in zip(conditions, functions, strict=True):
        value = function(x, *args, **kwargs) if callable(function) else function
        found = np.where(condition, value, found)
    return found.astype(x.dtype)


def _at_least_1d(x: Array) -> Array:
    return x if x.ndim else x.expand(0)


REARRANGING: dict[str, Callable[..., Any]] = {
    "squeeze": _squeeze, "flip": _flip, "fliplr": lambda x: _flip(x, 1), "flipud": lambda x: _flip(x, 0),
    "roll": _roll, "repeat": _repeat, "tile": _tile, "append": _append, "insert": _insert,
    "delete": lambda x, places, axis=None: _taken(x, lambda at: np.delete(at, places), axis % x.ndim),
    "split": lambda x, sections, axis=0: _split(np.split, x, sections, axis),
    "array_split": lambda x, sections, axis=0: _split(np.array_split, x, sections, axis),
    "hsplit": lambda x, sections: _split(np.split, x, sections, 1),
    "swapaxes": _swapped, "moveaxis": _moved, "select": _select, "piecewise": _piecewise,
    "atleast_1d": _at_least_1d, "outer": lambda x, y: np.ravel(x)[:, None] * np.ravel(y),
    "vander": lambda x, n, increasing=False: np.column_stack(
        [x**power for power in (range(n) if increasing else range(n)[::-1])]
    ),
}  # fmt: skip
"""By name."""
