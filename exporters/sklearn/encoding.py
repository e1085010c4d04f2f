"""Values as positions among known ones: numbers by comparison, text by ``LabelEncoder``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic
from entrepot.exporters.sklearn.columns import Columns
from entrepot.ir.errors import ConversionError


def position(x: Symbolic, known: Any) -> Symbolic:
    """Which of some values each element is, or -1.

    Raises:
        ConversionError: The values and the elements are of different kinds.
    """
    known = np.asarray(known)
    if (x.dtype == object) != (known.dtype.kind in "USO" and not _numeric(known)):
        raise ConversionError("the data is text where the estimator knows numbers, or the other way round")
    if x.dtype == object:
        return _text_position(x, [str(text) for text in known])
    values = np.asarray(known, float)
    return _number_position(x, values)


def coded(x: Any, tables: Iterable[Sequence[Any]]) -> Any:
    """A table whose categories are numbered; NaN for one that is not known.

    Args:
        x: The table; anything else is numbered already.
        tables: The categories of each column that has some, in order.
    """
    if not isinstance(x, Columns):
        return x
    known = iter(tables)
    arrays = [
        _or_nan(position(array, next(known))) if name in x.categorical else array
        for name, array in zip(x.names, x.arrays, strict=True)
    ]
    return Columns(x.names, arrays)


def _or_nan(place: Symbolic) -> Symbolic:
    return np.where(place < 0, np.nan, place.astype(np.float64))


def _numeric(known: Any) -> bool:
    return known.dtype == object and not any(isinstance(item, str) for item in known)


def _text_position(x: Symbolic, known: list[str]) -> Symbolic:
    places = list(range(len(known)))
    return x.op("LabelEncoder", dtype=np.int64, domain="ai.onnx.ml", keys_strings=known, values_int64s=places,
                default_int64=-1)  # fmt: skip


def _number_position(x: Symbolic, known: Any) -> Symbolic:
    values = x.expand(-1)
    missing = np.isnan(known)
    same = values.astype(np.float64) == np.where(missing, 0.0, known) if missing.any() else values == _like(known, x)
    if missing.any():
        same = (same & ~missing) | (np.isnan(values.astype(np.float64)) & missing)
    found = same.astype(np.int64)
    return np.where(found.max(-1) == 1, found.argmax(-1), np.int64(-1))


def _like(known: Any, x: Symbolic) -> Any:
    """The values in the type of the elements, where that loses nothing."""
    cast = known.astype(x.dtype)
    return cast if np.array_equal(cast, known) else known
