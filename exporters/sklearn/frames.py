"""A data frame that is not there yet, as users' functions take one apart and put others together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Array
from entrepot.exporters.sklearn.columns import Columns, each, matrix
from entrepot.exporters.sklearn.series import AGGREGATES, ELEMENTWISE, Series, aggregated, plain
from entrepot.ir.errors import ConversionError


class Frame(Columns, np.lib.mixins.NDArrayOperatorsMixin):
    """A table with pandas' words for it."""

    __array_priority__ = 2000
    __hash__ = object.__hash__

    @classmethod
    def of(cls, table: Columns) -> Frame:
        """The same columns."""
        return cls(table.names, table.arrays, table.categorical)

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        """Column by column; two tables have to have the same ones."""
        tables = [item for item in operands if isinstance(item, Frame)]
        rest = [_by_column(item, self.names) for item in operands]
        odd = [item for item in rest if not isinstance(item, Frame | Mapping) and getattr(item, "ndim", False)]
        odd = [item for item in odd if not (isinstance(item, Array) and item.shape[1:] == (len(self.names),))]
        if method != "__call__" or any(table.names != self.names for table in tables) or odd:
            raise ConversionError("tables of other columns cannot be joined in a graph", hint="take columns by name")
        arrays = [
            ufunc(*(_own(item, name, at, self.names) for item in rest), **options) for at, name in enumerate(self.names)
        ]
        return Frame(self.names, arrays)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*map(plain, args), **{name: plain(value) for name, value in kwargs.items()})

    def __getattr__(self, name: str) -> Any:
        """Columns by name, and pandas' words that are said of each column or along the rows."""
        if name.startswith("__") or name in ("names", "arrays", "categorical"):
            raise AttributeError(name)
        if name in self.names:
            return self[name]
        if name in ELEMENTWISE:
            return lambda *args, **kwargs: self._each(name, *args, **kwargs)
        if name in AGGREGATES:
            return lambda axis=0, **kwargs: self._aggregated(name, axis, **kwargs)
        raise AttributeError(f"a table that stands for others has no '{name}'")

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, list | np.ndarray) or type(key).__name__ == "Index":
            return Frame.of(self.pick([self.names.index(name) for name in key]))
        if isinstance(key, Series | Array | Frame):
            raise ConversionError("a choice of rows cannot be written into a graph", hint="where keeps them all")
        return Series(self.arrays[self.names.index(key)], key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, list):
            columns = (
                each(value) if isinstance(value, Columns) or getattr(value, "ndim", 0) == 2 else [value] * len(key)
            )
            for name, column in zip(key, columns, strict=True):
                self[name] = column
            return
        array = _column(self.arrays[0], value)
        if key in self.names:
            self.arrays[self.names.index(key)] = array
        else:
            self.names.append(key)
            self.arrays.append(array)

    def __contains__(self, name: Any) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[Any]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __bool__(self) -> bool:
        raise ConversionError("the truth of a table cannot be written into a graph")

    def keys(self) -> Sequence[Any]:
        """The names of the columns."""
        return list(self.names)

    def items(self) -> Iterator[tuple[Any, Series]]:
        """The columns with their names."""
        return ((name, self[name]) for name in self.names)

    @property
    def columns(self) -> Any:
        """The names, as pandas has them."""
        from pandas import Index

        return Index(self.names)

    @columns.setter
    def columns(self, names: Sequence[Any]) -> None:
        self.names = list(names)

    @property
    def index(self) -> None:
        """That of the rows, which no graph knows of."""
        return

    @property
    def ndim(self) -> int:
        """Two."""
        return 2

    @property
    def dtypes(self) -> Any:
        """The types of the columns."""
        from pandas import Series as Real

        return Real([array.dtype for array in self.arrays], index=self.names)

    @property
    def values(self) -> Array:
        """One array of all."""
        return matrix(self)

    def to_numpy(self, dtype: Any = None, **_: Any) -> Array:
        """The same."""
        return matrix(self) if dtype is None else matrix(self).astype(dtype)

    def copy(self, deep: bool = True) -> Frame:
        """Another table of the same columns."""
        return Frame.of(self)

    def assign(self, **columns: Any) -> Frame:
        """With further columns, or with others in their places; functions are given the table."""
        made = self.copy()
        for name, value in columns.items():
            made[name] = value(made) if callable(value) else value
        return made

    def drop(self, labels: Any = None, axis: Any = 0, columns: Any = None, inplace: bool = False, **_: Any) -> Any:
        """Without some columns."""
        gone = columns if columns is not None else labels if axis in (1, "columns") else None
        if gone is None:
            raise ConversionError("rows cannot be dropped in a graph", hint="drop(columns=...)")
        gone = [gone] if isinstance(gone, str | int) else list(gone)
        missing = [name for name in gone if name not in self.names]
        if missing:
            raise KeyError(missing)
        kept = Frame.of(self.pick([at for at, name in enumerate(self.names) if name not in gone]))
        if not inplace:
            return kept
        self.names, self.arrays = kept.names, kept.arrays
        return None

    def pop(self, name: Any) -> Series:
        """A column, which the table then has no more."""
        found: Series = self[name]
        self.drop(columns=[name], inplace=True)
        return found

    def rename(self, mapper: Any = None, columns: Any = None, axis: Any = 1, inplace: bool = False) -> Any:
        """With other names."""
        new = mapper if columns is None else columns
        names = [new(name) if callable(new) else new.get(name, name) for name in self.names]
        if not inplace:
            return Frame(names, self.arrays)
        self.names = names
        return None

    def apply(self, function: Callable[[Any], Any], axis: Any = 0, **_: Any) -> Any:
        """A function of each column, or of each row, of which only elements can be taken by name."""
        if axis in (1, "columns"):
            return _series(function(Row(self)))
        return frame_of({name: function(self[name]) for name in self.names})

    def applymap(self, function: Callable[[Any], Any]) -> Frame:
        """A function of each element, run on whole columns."""
        return frame_of({name: self[name].apply(function) for name in self.names})

    map = applymap

    def select_dtypes(self, include: Any = None, exclude: Any = None) -> Frame:
        """The columns of certain types, as pandas tells them."""
        from pandas import DataFrame

        empty = DataFrame({name: np.zeros(1, array.dtype) for name, array in zip(self.names, self.arrays, strict=True)})
        return self[list(empty.select_dtypes(include=include, exclude=exclude).columns)]

    def filter(self, items: Any = None, like: str | None = None, regex: str | None = None, axis: Any = 1) -> Frame:
        """Columns by their names."""
        if items is not None:
            return self[[name for name in items if name in self.names]]
        kept = [n for n in self.names if (like in str(n) if like is not None else re.search(regex or "", str(n)))]
        return self[kept]

    @property
    def loc(self) -> Places:
        """Columns by name, for all rows, or for those where something holds."""
        return Places(self, by_name=True)

    @property
    def iloc(self) -> Places:
        """Columns by number."""
        return Places(self, by_name=False)

    def _each(self, word: str, *args: Any, **kwargs: Any) -> Frame:
        """A word that is said of each column, of its own argument where a dictionary or a table has one for it."""
        made = self.copy()
        for at, name in enumerate(self.names):
            own = [_own(_by_column(arg, self.names), name, at, self.names) for arg in args]
            named = {key: _own(_by_column(arg, self.names), name, at, self.names) for key, arg in kwargs.items()}
            if not any(item is _SKIP for item in (*own, *named.values())):
                made.arrays[at] = ELEMENTWISE[word](self.arrays[at], *own, **named)
        return made

    def _aggregated(self, word: str, axis: Any, **kwargs: Any) -> Series:
        if axis not in (1, "columns"):
            raise ConversionError(f"the {word} of each column depends on the rows that come together", hint="axis=1")
        known = {name: kwargs[name] for name in ("skipna", "ddof") if name in kwargs}
        return Series(aggregated(matrix(self), word, 1, **known))


_SKIP = "entrepot: this column stays as it is"


def _by_column(argument: Any, names: Sequence[Any]) -> Any:
    """Numbers for some columns by name, as a series of pandas has them, or in the order of the columns."""
    if hasattr(argument, "index") and hasattr(argument, "to_dict") and not isinstance(argument, Frame | Series):
        return argument.to_dict()
    if isinstance(argument, np.ndarray) and argument.shape == (len(names),):
        return dict(zip(names, argument.tolist(), strict=True))
    return argument


def _own(argument: Any, name: Any, at: int, names: Sequence[Any]) -> Any:
    """The part of an argument that is for one column."""
    if isinstance(argument, Mapping) and argument.keys() <= set(names):
        return argument.get(name, _SKIP)
    if isinstance(argument, Array) and argument.ndim == 2:
        return argument[:, at]
    return argument.arrays[at] if isinstance(argument, Frame) else argument


class Row:
    """One row, which stands for all; a function that asks it for more than elements cannot be followed."""

    def __init__(self, table: Frame) -> None:
        self._table = table

    def __getitem__(self, name: Any) -> Series:
        if not isinstance(name, str | int):
            raise ConversionError("a part of a row cannot be followed", hint="take its elements by name")
        found: Series = self._table[name]
        return found

    def __getattr__(self, name: str) -> Series:
        if name.startswith("_") or name not in self._table:
            raise AttributeError(f"a row that stands for others has no '{name}'")
        return self[name]


class Places:
    """``frame.loc`` and ``frame.iloc``."""

    def __init__(self, table: Frame, *, by_name: bool) -> None:
        self._table, self._by_name = table, by_name

    def __getitem__(self, key: Any) -> Any:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if not (isinstance(rows, slice) and rows == slice(None)):
            raise ConversionError("a choice of rows cannot be written into a graph", hint="where keeps them all")
        return self._table[self._named(columns)]

    def __setitem__(self, key: Any, value: Any) -> None:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        names = self._named(columns)
        if isinstance(rows, slice) and rows == slice(None):
            self._table[names] = value
            return
        for name in [names] if not isinstance(names, list) else names:
            old = self._table[name]
            new = old.mask(rows, plain(value))
            self._table[name] = new.astype(old.dtype) if new.dtype.kind == old.dtype.kind else new

    def _named(self, columns: Any) -> Any:
        if self._by_name and not isinstance(columns, slice):
            return list(columns) if isinstance(columns, tuple) or hasattr(columns, "tolist") else columns
        if isinstance(columns, int | np.integer):
            return self._table.names[columns]
        if self._by_name and columns != slice(None):
            names, stop = self._table.names, columns.stop
            first = 0 if columns.start is None else names.index(columns.start)
            return names[first : None if stop is None else names.index(stop) + 1]
        return list(np.array(self._table.names, object)[columns])


def _series(found: Any) -> Any:
    return Series(found) if isinstance(found, Array) and found.ndim == 1 else found


def frame_of(columns: Mapping[Any, Any]) -> Frame:
    """A table of columns, some of which may be single numbers."""
    arrays = {name: plain(value) for name, value in columns.items()}
    like = next((array for array in arrays.values() if isinstance(array, Array) and array.ndim), None)
    if like is None:
        raise ConversionError("a table of numbers that are the same in every row has no rows in a graph")
    return Frame(list(arrays), [_column(like, array) for array in arrays.values()])


def _column(like: Array, value: Any) -> Array:
    """A column of as many rows as another: what is one number is the same in each."""
    value = plain(value)
    if isinstance(value, Array) and value.ndim:
        return value[:, 0] if value.ndim == 2 else value
    if not isinstance(value, Array) and np.ndim(value):
        raise ConversionError("a column of as many values as the sample has rows cannot be written into a graph")
    return like.rows(value) if not isinstance(value, Array) else like.rows(0).astype(value.dtype) + value
