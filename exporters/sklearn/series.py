"""A column of a data frame that is not there yet: pandas' words for what NumPy has, and what it does otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Array, Symbolic, lifted
from entrepot.exporters.sklearn.encoding import position
from entrepot.ir.errors import ConversionError


class Series(np.lib.mixins.NDArrayOperatorsMixin):
    """A column.

    Args:
        array: Its elements, along one axis.
        name: What it is called.
    """

    __array_priority__ = 2000
    __hash__ = object.__hash__

    def __init__(self, array: Symbolic, name: Any = None) -> None:
        self.array, self.name = array, name

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        plain = [each.array if isinstance(each, Series) else each for each in operands]
        found = getattr(ufunc, method)(*plain, **options)
        return Series(found, self.name) if isinstance(found, Array) and found.ndim == 1 else found

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*map(plain, args), **{name: plain(value) for name, value in kwargs.items()})

    def __bool__(self) -> bool:
        return bool(self.array)

    def __getattr__(self, name: str) -> Any:
        """Words of pandas that are said in NumPy's: ``s.gt(0)``, ``s.sum()``."""
        if name in _UFUNCS:
            return lambda other: _UFUNCS[name](self, other)
        if name in AGGREGATES:
            return lambda skipna=True, ddof=1, **_: aggregated(self.array, name, None, skipna=skipna, ddof=ddof)
        if name in ELEMENTWISE:
            return lambda *args, **kwargs: Series(ELEMENTWISE[name](self.array, *args, **kwargs), self.name)
        raise AttributeError(f"a column that stands for others has no '{name}'")

    @property
    def str(self) -> Texts:
        """Questions about text."""
        return Texts(self)

    @property
    def values(self) -> Symbolic:
        """The elements."""
        return self.array

    def to_numpy(self, dtype: Any = None, **_: Any) -> Symbolic:
        """The elements."""
        return self.array if dtype is None else self.array.astype(dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Their type."""
        return self.array.dtype

    @property
    def shape(self) -> tuple[int | None, ...]:
        """One size."""
        return self.array.shape

    @property
    def ndim(self) -> int:
        """One."""
        return 1

    def copy(self, deep: bool = True) -> Series:
        """Another column of the same elements."""
        return Series(self.array, self.name)

    def to_frame(self, name: Any = None) -> Any:
        """A table of this column."""
        from entrepot.exporters.sklearn.frames import Frame

        return Frame([self.name if name is None else name], [self.array])

    def rename(self, name: Any, **_: Any) -> Series:
        """Under another name."""
        return Series(self.array, name)

    def apply(self, function: Callable[[Any], Any]) -> Any:
        """A function of each element, run on all at once."""
        found = function(self)
        return found if isinstance(found, Series) else Series(found, self.name)

    def map(self, given: Any) -> Any:
        """The same, or what a dictionary has for each element; NaN for what it has not."""
        if callable(given):
            return self.apply(given)
        table = given.to_dict() if hasattr(given, "to_dict") else given
        return Series(looked_up(self.array, table), self.name)


class Texts:
    """``series.str``: whether texts have a part, which has to be a text itself, not a pattern."""

    def __init__(self, of: Series) -> None:
        self._of = of

    def contains(self, pat: str, case: bool = True, flags: int = 0, na: Any = None, regex: bool = True) -> Series:
        """Whether it is in a text."""
        if not case or flags or (regex and re.escape(pat).replace("\\ ", " ") != pat):
            raise ConversionError("patterns in texts cannot be written into a graph", hint="regex=False")
        return self._matches(f"(?s).*{re.escape(pat)}.*")

    def startswith(self, pat: str, na: Any = None) -> Series:
        """Whether a text begins so."""
        return self._matches(f"(?s){re.escape(pat)}.*")

    def endswith(self, pat: str, na: Any = None) -> Series:
        """Whether a text ends so."""
        return self._matches(f"(?s).*{re.escape(pat)}")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"texts that stand for others have no 'str.{name}'")

    def _matches(self, pattern: str) -> Series:
        found = self._of.array.op("RegexFullMatch", pattern=pattern, dtype=bool)
        return Series(found, self._of.name)


def plain(value: Any) -> Any:
    """What NumPy is given: columns and tables, on their own or in a list, as arrays."""
    if isinstance(value, Series):
        return value.array
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else value
    return value.to_numpy() if hasattr(value, "to_numpy") and hasattr(value, "arrays") else value


def looked_up(x: Symbolic, table: Any) -> Symbolic:
    """What a dictionary of numbers has for each element.

    Raises:
        ConversionError: It is no such dictionary.
    """
    values = list(table.values()) if isinstance(table, Mapping) else [""]
    if any(isinstance(value, str) for value in values):
        raise ConversionError("what text is mapped to has to be numbers in a graph", hint="a dictionary of numbers")
    at = position(x, np.array(list(table), object if x.dtype == object else None))
    return lifted(x.build, np.array([*values, np.nan], np.float64)).take(np.where(at < 0, np.int64(len(values)), at), 0)


def _missing(x: Symbolic) -> Symbolic:
    return np.isnan(x) if x.dtype.kind == "f" else _same(x, value=False)


def _same(x: Symbolic, *, value: bool) -> Symbolic:
    """A truth value for each element."""
    if x.dtype == object:
        found = position(x, [""]) > -2
        return found if value else ~found
    return np.full_like(x, value, dtype=bool)


def aggregated(x: Symbolic, name: str, axis: int | None, *, skipna: bool = True, ddof: int = 1) -> Symbolic:
    """A sum, a mean and the like, as pandas has them: without what is missing, variances of samples."""
    if x.dtype == object:
        raise ConversionError(f"the {name} of text cannot be written into a graph", hint="choose columns of numbers")
    lost = _missing(x) if skipna else _same(x, value=False)
    return AGGREGATES[name](x, lost, axis, ddof)


def _total(x: Symbolic, lost: Symbolic, axis: Any, ddof: int = 1) -> Symbolic:
    return np.where(lost, 0, x.astype(np.int64) if x.dtype.kind == "b" else x).sum(axis)


def _count(x: Symbolic, lost: Symbolic, axis: Any, ddof: int = 1) -> Symbolic:
    return (~lost).astype(np.int64).sum(axis)


def _average(x: Symbolic, lost: Symbolic, axis: Any, ddof: int = 1) -> Symbolic:
    return _total(x, lost, axis) / _count(x, lost, axis)


def _spread(x: Symbolic, lost: Symbolic, axis: Any, ddof: int) -> Symbolic:
    mean = _average(x, lost, axis)
    apart = x - (mean if axis is None else mean.expand(axis))
    count = _count(x, lost, axis) - ddof
    return np.where(count > 0, np.where(lost, 0.0, apart * apart).sum(axis) / count, np.nan)


def _largest(x: Symbolic, lost: Symbolic, axis: Any, ddof: int = 1) -> Symbolic:
    if x.dtype.kind != "f":
        return x.max(axis)
    return np.where(_count(x, lost, axis) == 0, np.nan, np.where(lost, -np.inf, x).max(axis))


def _smallest(x: Symbolic, lost: Symbolic, axis: Any, ddof: int = 1) -> Symbolic:
    return -_largest(-x, lost, axis) if x.dtype.kind == "f" else x.min(axis)


AGGREGATES: dict[str, Callable[..., Symbolic]] = {
    "sum": _total, "count": _count, "mean": _average, "var": _spread, "max": _largest, "min": _smallest,
    "std": lambda x, lost, axis, ddof: np.sqrt(_spread(x, lost, axis, ddof)),
    "any": lambda x, lost, axis, ddof: (~lost & (x != 0)).any(axis),
    "all": lambda x, lost, axis, ddof: (lost | (x != 0)).all(axis),
}  # fmt: skip
"""By name: of elements, which of them are missing, an axis and the degrees of freedom that are lost."""


def _clipped(x: Symbolic, lower: Any = None, upper: Any = None, **_: Any) -> Symbolic:
    return np.clip(x, plain(lower), plain(upper))


def _where(x: Symbolic, condition: Any, other: Any = np.nan) -> Symbolic:
    return np.where(plain(condition), x, plain(other))


def _replaced(x: Symbolic, old: Any, new: Any = None) -> Symbolic:
    """Some values by others, of numbers alone: text that is not among them would stay text."""
    pairs = dict(old) if isinstance(old, Mapping) else dict.fromkeys(old, new) if isinstance(old, list) else {old: new}
    if x.dtype == object or any(isinstance(each, str) for pair in pairs.items() for each in pair):
        raise ConversionError("text cannot be replaced by other values in a graph", hint="map it by a dictionary")
    found = x
    for one, two in pairs.items():
        same = np.isnan(x) if isinstance(one, float) and np.isnan(one) else x == one
        found = np.where(same, two, found)
    return found


ELEMENTWISE: dict[str, Callable[..., Symbolic]] = {
    "isna": _missing, "isnull": _missing, "notna": lambda x: ~_missing(x),
    "notnull": lambda x: ~_missing(x), "abs": np.abs, "clip": _clipped, "where": _where,
    "mask": lambda x, condition, other=np.nan: np.where(plain(condition), plain(other), x),
    "fillna": lambda x, value: np.where(_missing(x), plain(value), x) if x.dtype.kind == "f" else x,
    "astype": lambda x, dtype, **_: x.astype(dtype), "round": lambda x, decimals=0: np.round(x, decimals),
    "isin": lambda x, values: position(x, list(values)) >= 0, "replace": _replaced,
    "between": lambda x, left, right: (x >= plain(left)) & (x <= plain(right)),
}  # fmt: skip
"""By name: of elements, and the arguments of the method."""

_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "subtract": np.subtract, "mul": np.multiply, "multiply": np.multiply,
    "div": np.true_divide, "divide": np.true_divide, "truediv": np.true_divide, "floordiv": np.floor_divide,
    "pow": np.power, "mod": np.mod, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
    "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip
