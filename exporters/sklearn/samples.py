"""Samples of tabular data: an array, a table with columns of different types, or text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import Flat, flatten_named
from entrepot.ir.errors import InputError

_WHOLE = "X"
"""The input of a model that takes one array, as scikit-learn calls it."""


@dataclass(frozen=True)
class Table:
    """What an estimator is called with.

    Attributes:
        call: Its arrays by name.
        rebuild: Makes of arrays like those what the estimator takes.
        names: The columns, if each is an input of its own.
        categorical: Those that the table says are categories.
    """

    call: Flat
    rebuild: Callable[[Sequence[np.ndarray]], Any]
    names: Sequence[Any] | None = None
    categorical: Collection[Any] = ()

    @classmethod
    def of(cls, sample: Any, known: Sequence[str] | None = None) -> Table:
        """Read a sample.

        Args:
            sample: As the caller gave it.
            known: Names of the columns that the estimator was fitted with.

        Raises:
            InputError: It is not data that an estimator could be called with.
        """
        x = _one(sample)
        if isinstance(x, Mapping):
            return cls._columns(list(x), list(x.values()), _joined(list(x)))
        if hasattr(x, "columns") and hasattr(x, "shape") and not isinstance(x, np.ndarray):
            names = list(x.columns)
            return cls._columns(names, [x[name] for name in names], _framed(x), _categorical(x))
        if hasattr(x, "tocsr"):
            raise InputError(
                "a sparse matrix cannot be an input of a graph", hint="give x.toarray(): dense, same values"
            )
        if type(x).__name__ == "DMatrix":
            raise InputError("a DMatrix cannot be read back", hint="give the array that it was made of")
        x = _array(x)
        if x.dtype == object and x.ndim == 2 and not all(isinstance(item, str) for item in x.ravel()):
            names = list(known) if known is not None else [f"x{at}" for at in range(x.shape[1])]
            return cls._columns(names, [_plain(column) for column in x.T], _mixed)
        return cls(flatten_named([(_WHOLE, _feedable(_WHOLE, x))], {}), lambda arrays: arrays[0])

    @classmethod
    def _columns(
        cls,
        names: Sequence[Any],
        values: Sequence[Any],
        rebuild: Callable[[Sequence[np.ndarray]], Any],
        categorical: Collection[Any] = (),
    ) -> Table:
        arrays = [_feedable(str(name), _flat(value)) for name, value in zip(names, values, strict=True)]
        call = flatten_named([(str(name), array) for name, array in zip(names, arrays, strict=True)], {})
        return cls(call, rebuild, names, categorical)


def _categorical(frame: Any) -> Mapping[Any, Any]:
    """The types of a frame's columns of categories, by name."""
    types = {name: frame[name].dtype for name in frame.columns if hasattr(frame, "astype")}
    return {name: kind for name, kind in types.items() if hasattr(kind, "categories")}


def _framed(frame: Any) -> Callable[[Sequence[np.ndarray]], Any]:
    """Makes a frame like that of other values; what its columns of categories can be stays the same."""
    kind, names, categories = type(frame), list(frame.columns), _categorical(frame)

    def rebuilt(arrays: Sequence[np.ndarray]) -> Any:
        made = kind(dict(zip(names, arrays, strict=True)))
        return made.astype(categories) if categories else made

    return rebuilt


def _one(sample: Any) -> Any:
    """The one argument of an estimator's methods."""
    if sample is None:
        raise InputError(
            "an estimator needs a sample to be exported", hint="ep.export(model, X): some rows of its data"
        )
    if isinstance(sample, Sample):
        given = [*sample.args, *sample.kwargs.values()]
    else:
        given = list(sample) if isinstance(sample, tuple) else [sample]
    if len(given) != 1:
        raise InputError(
            f"an estimator takes one argument, the sample has {len(given)}", hint="give X alone, without y"
        )
    return given[0]


def _array(given: Any) -> np.ndarray:
    if hasattr(given, "to_numpy"):
        return np.asarray(given.to_numpy())
    try:
        return np.asarray(given)
    except ValueError as error:
        raise InputError(f"the sample is no table: {error}", hint="give rows of the same length") from error


def _flat(value: Any) -> np.ndarray:
    array = _array(value)
    return _plain(array.reshape(len(array))) if array.ndim == 2 and array.shape[1] == 1 else _plain(array)


def _plain(column: np.ndarray) -> np.ndarray:
    """A column of Python objects with the type that they have in common."""
    if column.dtype != object or any(isinstance(item, str) for item in column):
        return column
    return np.array([np.nan if item is None else item for item in column])


def _feedable(name: str, array: np.ndarray) -> np.ndarray:
    """An array that can be an input of a graph.

    Raises:
        InputError: There is no type for its elements.
    """
    if array.dtype.kind in "fiub":
        return np.ascontiguousarray(array)
    texts = array.astype(object)
    if array.dtype.kind in "OUT" and all(isinstance(item, str) for item in texts.ravel()):
        return texts
    odd = next((item for item in texts.ravel() if not isinstance(item, str)), array.dtype)
    raise InputError(
        f"'{name}' holds {odd!r} of {type(odd).__name__}, for which a graph has no type",
        hint="give numbers, or text without missing values: an empty string, or a word of your own, for those",
    )


def _joined(names: list[Any]) -> Callable[[Sequence[np.ndarray]], Any]:
    """Columns by name as a data frame where pandas is installed, else as an array of objects."""
    try:
        from pandas import DataFrame
    except ModuleNotFoundError:
        return _mixed
    return lambda arrays: DataFrame(dict(zip(names, arrays, strict=True)))


def _mixed(arrays: Sequence[np.ndarray]) -> np.ndarray:
    if len({len(array) for array in arrays}) > 1:
        raise ValueError("columns have one length")
    if len({array.dtype for array in arrays}) == 1 and arrays[0].dtype != object:
        return np.stack(list(arrays), 1)
    return np.stack([array.astype(object) for array in arrays], 1)
