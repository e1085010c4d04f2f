"""``X[...] = values``: the array is another value of the graph from then on."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Array
from entrepot.exporters.sklearn.functions import FUNCTIONS, concatenate
from entrepot.exporters.sklearn.selection import Chosen
from entrepot.ir.errors import ConversionError

_WIDEST = 512
"""Columns of a table that is put together column by column."""


def assigned(x: Array, key: Any, value: Any) -> Array:
    """What an array is after something was assigned to a part of it.

    Args:
        x: The array, which is not changed.
        key: Its elements by a mask, or columns, of all rows or of those in a mask.
        value: Their values.

    Raises:
        ConversionError: It is another part.
    """
    if isinstance(key, Array) and key.dtype.kind == "b":
        mask = key if key.ndim == x.ndim else key.expand(-1)
        if isinstance(value, Chosen) and value.mask is key:
            return _where(mask, value.array, x)
        if isinstance(value, Array) and value.ndim:
            raise ConversionError("values for the elements in a mask cannot be written into a graph", hint="np.where")
        return _where(mask, value, x)
    if x.ndim == 2 and isinstance(key, tuple) and len(key) == 2:
        rows, columns = key
        if isinstance(rows, slice) and rows == slice(None):
            return _with_columns(x, columns, value, None)
        if isinstance(rows, Array) and rows.dtype.kind == "b" and not (isinstance(value, Array) and value.ndim):
            return _with_columns(x, columns, value, rows)
    raise ConversionError("an assignment to rows cannot be written into a graph", hint="np.where, np.column_stack")


def _where(mask: Array, value: Any, x: Array) -> Array:
    return FUNCTIONS["where"](mask, value, x).astype(x.dtype)


def _with_columns(x: Array, columns: Any, value: Any, rows: Array | None) -> Array:
    width = x.shape[1]
    if width is None or width > _WIDEST or isinstance(columns, Array):
        raise ConversionError("an assignment to these columns cannot be written into a graph", hint="np.column_stack")
    parts = [x[:, at] for at in range(width)]
    for place, at in enumerate(np.atleast_1d(np.arange(width)[columns])):
        given = _column(x, value, place, alone=isinstance(columns, int | np.integer))
        parts[at] = (given if rows is None else _where(rows, given, parts[at])).astype(x.dtype)
    return concatenate([part.expand(1) for part in parts], 1)


def _column(x: Array, value: Any, place: int, *, alone: bool) -> Array:
    """What one of the columns becomes: numbers are the same in all rows."""
    if not isinstance(value, Array):
        return x.rows(np.ravel(value)[place] if np.size(value) > 1 else np.ravel(value)[0])
    if value.ndim == (1 if alone else 2):
        return value if alone else value[:, place if value.shape[1] != 1 else 0]
    if value.ndim == 0:
        return x.rows(0).astype(value.dtype) + value
    raise ConversionError("values of this shape cannot be assigned to columns", hint="one value for each element")
