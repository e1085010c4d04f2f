"""A table whose columns have types of their own, as ``ColumnTransformer`` and the encoders take it apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Array
from entrepot.exporters.sklearn.functions import concatenate
from entrepot.ir.errors import ConversionError


class Columns:
    """Arrays of one axis, each with a name.

    Args:
        names: What they are called.
        arrays: One per name.
        categorical: The names of those that the table says are categories.
    """

    def __init__(self, names: Sequence[Any], arrays: Sequence[Array], categorical: Collection[Any] = ()) -> None:
        self.names, self.arrays, self.categorical = list(names), list(arrays), set(categorical)

    @property
    def build(self) -> Any:
        """The graph."""
        return self.arrays[0].build

    @property
    def shape(self) -> tuple[int | None, int]:
        """Rows and columns."""
        return self.arrays[0].shape[0], len(self.arrays)

    def pick(self, at: Sequence[int]) -> Columns:
        """Some of the columns."""
        return Columns([self.names[i] for i in at], [self.arrays[i] for i in at], self.categorical)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, list):
            return self.pick([self.names.index(name) for name in key])
        return self.arrays[self.names.index(key)]


def matrix(x: Any) -> Array:
    """A table as one array, of the type that all of its columns can have.

    Raises:
        ConversionError: Some columns are text, and others are not.
    """
    if isinstance(x, Array):
        return x
    text = {array.dtype == object for array in x.arrays}
    if text == {True, False}:
        raise ConversionError(
            "columns of text and of numbers cannot be one array",
            hint="send them through different steps: ColumnTransformer",
        )
    return concatenate([array.expand(1) for array in x.arrays], 1)


def each(x: Any) -> list[Array]:
    """The columns of a table, or of an array with two axes."""
    return x.arrays if isinstance(x, Columns) else [x[:, at] for at in range(x.shape[1])]


def beside(tables: Sequence[Any]) -> Any:
    """Tables side by side: an array, unless one has text and another has not."""
    tables = [table[:, None] if isinstance(table, Array) and table.ndim == 1 else table for table in tables]
    arrays = [array for table in tables for array in (table.arrays if isinstance(table, Columns) else [table])]
    if len({array.dtype == object for array in arrays}) == 1:
        return concatenate([array[:, None] if array.ndim == 1 else array for array in arrays], 1)
    names = [f"x{at}" for at in range(sum(table.shape[1] or 0 for table in tables))]
    return Columns(names, [column for table in tables for column in each(table)])


def as_float(x: Any) -> Array:
    """In float32 where it is that, else in float64: what most estimators compute in."""
    x = matrix(x)
    if x.dtype == object:
        raise ConversionError("text cannot become numbers in a graph", hint="give numbers as numbers")
    return x if x.dtype == np.float32 else x.astype(np.float64)


def as_double(x: Any) -> Array:
    """In float64, as estimators take it that know no other type."""
    return as_float(x).astype(np.float64)
