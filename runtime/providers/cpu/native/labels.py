"""Labels and categories: looked up, or spread out as ones and zeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime import room
from entrepot.runtime.providers.cpu.table import native

Array = np.ndarray[Any, Any]
ML = "ai.onnx.ml"


@native("LabelEncoder", 4, domain=ML)
def label_encoder(
    X: Array, *, default_float: float = -0.0, default_int64: int = -1, default_string: str = "_Unused",
    default_tensor: Any = None, keys_floats: Any = None, keys_int64s: Any = None, keys_strings: Any = None,
    keys_tensor: Any = None, values_floats: Any = None, values_int64s: Any = None, values_strings: Any = None,
    values_tensor: Any = None,
) -> Array:  # fmt: skip
    """The value of each key; the first of equal keys counts, and NaN is a key like another."""
    keys = _one_of(keys_tensor, (keys_strings, object), (keys_int64s, np.int64), (keys_floats, np.float32))
    lists = (values_strings, object), (values_int64s, np.int64), (values_floats, np.float32)
    values = _one_of(values_tensor, *lists)
    if len(keys) != len(values):
        raise InputError(f"LabelEncoder has {len(keys)} keys and {len(values)} values")
    default = {"O": default_string, "i": default_int64, "f": default_float}[values.dtype.kind]
    if default_tensor is not None:
        default = np.asarray(default_tensor).reshape(-1)[0]
    return _looked_up(X, keys, values, default)


@native("CategoryMapper", 1, domain=ML)
def category_mapper(
    X: Array, *, cats_int64s: Any = None, cats_strings: Any = None, default_int64: int = -1,
    default_string: str = "_Unused",
) -> Array:  # fmt: skip
    """Strings to integers, or integers to strings."""
    words, numbers = np.array(cats_strings, object), np.array(cats_int64s, np.int64)
    if X.dtype.kind in "OU":
        return _looked_up(X, words, numbers, default_int64)
    return _looked_up(X, numbers, words, default_string)


@native("OneHotEncoder", 1, domain=ML)
def one_hot_encoder(X: Array, *, cats_int64s: Any = None, cats_strings: Any = None, zeros: int = 1) -> Array:
    """A row of zeros with a one for the category, along a new last axis; numbers are cut to integers first."""
    words = X.dtype.kind in "OU"
    categories = np.array(cats_strings, object) if words else np.array(cats_int64s, np.int64)
    room.claim((*X.shape, len(categories)), 4)
    ones: Array = (X if words else X.astype(np.int64))[..., None] == categories
    if not zeros and not ones.any(-1).all():
        raise InputError("OneHotEncoder: a category is not among those that it knows, and zeros=0 forbids that")
    return ones.astype(np.float32)


def _one_of(tensor: Any, *lists: tuple[Sequence[Any] | None, Any]) -> Array:
    if tensor is not None:
        return np.asarray(tensor).reshape(-1)
    found = next(((items, dtype) for items, dtype in lists if items), None)
    if found is None:
        raise InputError("LabelEncoder has no keys, or no values")
    return np.array(found[0], found[1])


def _looked_up(X: Array, keys: Array, values: Array, default: Any) -> Array:
    table = {_key(key): value for key, value in zip(reversed(keys.tolist()), reversed(values.tolist()), strict=True)}
    found = [table.get(_key(x), default) for x in X.reshape(-1).tolist()]
    return np.array(found, values.dtype).reshape(X.shape)


def _key(value: Any) -> Any:
    """The value; NaN, which is not equal to itself, as something that is."""
    return value if value == value else _NAN  # noqa: PLR0124


_NAN = object()


@native("ZipMap", 1, domain=ML)
def zip_map(X: Array, *, classlabels_int64s: Any = None, classlabels_strings: Any = None) -> list[dict[Any, Any]]:
    """For each row, its values by label."""
    labels = list(classlabels_strings or classlabels_int64s or ())
    return [dict(zip(labels, row, strict=True)) for row in np.atleast_2d(X).tolist()]
