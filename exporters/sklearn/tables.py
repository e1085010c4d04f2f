"""Pandas for users' functions: its words for tables that are not there yet, and itself for all others."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Array
from entrepot.exporters.sklearn.columns import Columns, matrix
from entrepot.exporters.sklearn.frames import Frame, frame_of
from entrepot.exporters.sklearn.series import ELEMENTWISE, Series, plain
from entrepot.ir.errors import ConversionError


def as_table(x: Any) -> Any:
    """Columns as a user's function takes them: a data frame, or one of its columns."""
    if isinstance(x, Columns):
        return Frame.of(x)
    return Series(x, x.column) if isinstance(x, Array) and x.column is not None else x


def as_columns(found: Any) -> Any:
    """What a user's function returns as converters take it."""
    return found.array if isinstance(found, Series) else found


class _Class(type):
    """A class of pandas, whose instances are those of ours as well, and made as such of arrays of a graph."""

    def __instancecheck__(cls, item: Any) -> bool:
        return isinstance(item, (cls.ours, cls.real()))

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        found = cls.made(*args, **kwargs)
        return cls.real()(*args, **kwargs) if found is None else found

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.real(), name)


class DataFrame(metaclass=_Class):
    """``pandas.DataFrame``."""

    ours = Frame

    @staticmethod
    def real() -> Any:
        """The class itself."""
        return sys.modules["pandas"].DataFrame

    @staticmethod
    def made(data: Any = None, index: Any = None, columns: Any = None, **_: Any) -> Frame | None:
        """A table of arrays, if there are some."""
        if isinstance(data, Frame):
            return data[list(columns)] if columns is not None else data.copy()
        if isinstance(data, Mapping) and any(isinstance(each, Array | Series) for each in data.values()):
            return frame_of(data if columns is None else {name: data[name] for name in columns})
        if isinstance(data, Series):
            return frame_of({data.name if columns is None else columns[0]: data})
        if isinstance(data, Array):
            parts = [data[:, at] for at in range(data.shape[1] or 0)] if data.ndim == 2 else [data]
            names: Sequence[Any] = range(len(parts)) if columns is None else list(columns)
            return Frame(names, parts)
        return None


class Column(metaclass=_Class):
    """``pandas.Series``."""

    ours = Series

    @staticmethod
    def real() -> Any:
        """The class itself."""
        return sys.modules["pandas"].Series

    @staticmethod
    def made(data: Any = None, index: Any = None, dtype: Any = None, name: Any = None, **_: Any) -> Series | None:
        """A column of an array."""
        if not isinstance(data, Array | Series):
            return None
        array = plain(data)
        return Series(array if dtype is None else array.astype(dtype), name)


def _concat(parts: Any, axis: Any = 0, **kwargs: Any) -> Any:
    """Tables and columns side by side."""
    parts = list(parts)
    if axis not in (1, "columns") or not any(isinstance(part, Frame | Series) for part in parts):
        return sys.modules["pandas"].concat(parts, axis=axis, **kwargs)
    tables = [Frame([part.name], [part.array]) if isinstance(part, Series) else part for part in parts]
    return Frame(
        [name for table in tables for name in table.names], [array for table in tables for array in table.arrays]
    )


def _elementwise(word: str) -> Any:
    def write(x: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(x, Frame | Series):
            return getattr(x, word)(*args, **kwargs)
        if isinstance(x, Array):
            return ELEMENTWISE[word](x, *args, **kwargs)
        return getattr(sys.modules["pandas"], word)(x, *args, **kwargs)

    return write


def _cut(x: Any, bins: Any, right: bool = True, labels: Any = None, include_lowest: bool = False, **kwargs: Any) -> Any:
    """Which interval each element is in, by number; not a number where it is in none."""
    if not isinstance(x, Series | Array):
        return sys.modules["pandas"].cut(x, bins, right, labels, include_lowest=include_lowest, **kwargs)
    if labels is not False or np.ndim(bins) == 0 or include_lowest:
        raise ConversionError(
            "intervals with names, or of the data's own bounds, cannot be written", hint="labels=False"
        )
    at = np.searchsorted(np.asarray(bins), plain(x), side="left" if right else "right") - 1
    inside = (at >= 0) & (at < len(bins) - 1)
    return Series(np.where(inside, at, np.nan), getattr(x, "name", None))


def _to_numeric(x: Any, **kwargs: Any) -> Any:
    numbers = isinstance(x, Series | Array) and x.dtype != object
    return x if numbers else sys.modules["pandas"].to_numeric(x, **kwargs)


_OWN: dict[str, Any] = {
    "DataFrame": DataFrame, "Series": Column, "concat": _concat, "to_numeric": _to_numeric, "cut": _cut,
    **{word: _elementwise(word) for word in ("isna", "isnull", "notna", "notnull")},
}  # fmt: skip


class Pandas(ModuleType):
    """The module."""

    def __getattr__(self, name: str) -> Any:
        found = _OWN.get(name)
        return getattr(sys.modules["pandas"], name) if found is None else found


PANDAS = Pandas("pandas")


def of_pandas() -> dict[Any, Any]:
    """What stands for the functions and classes of pandas, by what they stand for."""
    real = sys.modules.get("pandas")
    return {} if real is None else {getattr(real, name): own for name, own in _OWN.items()}


def as_array(x: Any) -> Any:
    """A table or a column as an array."""
    if isinstance(x, Frame):
        return matrix(x)
    return x.array if isinstance(x, Series) else x


def side_by_side(parts: Any) -> Any:
    """``np.c_``, whose parts are columns or tables."""
    arrays = [as_array(part) for part in (parts if isinstance(parts, tuple) else (parts,))]
    return np.column_stack(arrays) if any(isinstance(each, Array) for each in arrays) else np.c_[parts]
