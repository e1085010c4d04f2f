"""How many rows there are, which no graph knows before it runs: ``len(X)`` and ``X.shape[0]`` are ``None`` meanwhile.

NumPy makes arrays of so many rows in users' functions: ``np.zeros((len(X), 3))``, ``np.ones(X.shape[0])``.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Array
from entrepot.exporters.sklearn.columns import Columns
from entrepot.exporters.sklearn.inside import LIKE
from entrepot.ir.errors import ConversionError


@contextlib.contextmanager
def rows_of(x: Any) -> Iterator[None]:
    """Inside, ``None`` is the number of rows of ``x``."""
    before = LIKE.set(x.arrays[0] if isinstance(x, Columns) else x)
    try:
        yield
    finally:
        LIKE.reset(before)


def length(x: Any) -> int | None:
    """``len``."""
    first = getattr(x, "shape", None)
    return None if isinstance(first, tuple) and first and first[0] is None else len(x)


def _filled(function: Callable[..., Any], shape: Any, *args: Any, **kwargs: Any) -> Any:
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    like = LIKE.get()
    if None not in sizes or like is None:
        return function(shape, *args, **kwargs)
    if sizes[0] is not None or None in sizes[1:]:
        raise ConversionError("an array with rows along another axis than the first cannot be written into a graph")
    return like.rows(function(sizes[1:], *args, **kwargs))


def _spread(x: Any, shape: Any, **kwargs: Any) -> Any:
    """``np.broadcast_to``."""
    like = LIKE.get()
    if like is None or None not in np.atleast_1d(np.array(shape, object)) or isinstance(x, Array):
        return np.broadcast_to(x, shape, **kwargs)
    return like.rows(np.broadcast_to(np.squeeze(x, 0) if np.ndim(x) == len(shape) else x, shape[1:]))


def _repeated(x: Any, reps: Any) -> Any:
    """``np.tile`` of one row."""
    like = LIKE.get()
    if like is None or not isinstance(reps, tuple) or reps[0] is not None or isinstance(x, Array):
        return np.tile(x, reps)
    row = np.tile(x, reps[1:])
    return like.rows(row if row.ndim < len(reps) else row[0])


MAKING: dict[Any, Callable[..., Any]] = {
    np.zeros: functools.partial(_filled, np.zeros),
    np.ones: functools.partial(_filled, np.ones),
    np.empty: functools.partial(_filled, np.zeros),
    np.full: functools.partial(_filled, np.full),
    np.broadcast_to: _spread,
    np.tile: _repeated,
}
"""NumPy's functions that take a shape, by themselves."""
