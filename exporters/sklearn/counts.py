"""How many rows there are, which no graph knows before it runs: ``len(X)`` and ``X.shape[0]`` are ``None`` meanwhile.

NumPy makes arrays of so many rows in users' functions: ``np.zeros((len(X), 3))``, ``np.ones(X.shape[0])``.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Array
from entrepot.exporters.sklearn.columns import Columns
from entrepot.ir.errors import ConversionError

_LIKE: ContextVar[Array | None] = ContextVar("like", default=None)
"""What a user's function was called with."""


@contextlib.contextmanager
def rows_of(x: Any) -> Iterator[None]:
    """Inside, ``None`` is the number of rows of ``x``."""
    before = _LIKE.set(x.arrays[0] if isinstance(x, Columns) else x)
    try:
        yield
    finally:
        _LIKE.reset(before)


def length(x: Any) -> int | None:
    """``len``."""
    first = getattr(x, "shape", None)
    return None if isinstance(first, tuple) and first and first[0] is None else len(x)


def _filled(function: Callable[..., Any], shape: Any, *args: Any, **kwargs: Any) -> Any:
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    like = _LIKE.get()
    if None not in sizes or like is None:
        return function(shape, *args, **kwargs)
    if sizes[0] is not None or None in sizes[1:]:
        raise ConversionError("an array with rows along another axis than the first cannot be written into a graph")
    return like.rows(function(sizes[1:], *args, **kwargs))


MAKING: dict[Any, Callable[..., Any]] = {
    np.zeros: functools.partial(_filled, np.zeros),
    np.ones: functools.partial(_filled, np.ones),
    np.empty: functools.partial(_filled, np.zeros),
    np.full: functools.partial(_filled, np.full),
}
"""NumPy's functions that take a shape, by themselves."""
