"""What NumPy has as one function, or finds faster than by sorting everything."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime.kernels import selection as shared
from entrepot.runtime.providers.cpu.backend import NUMPY
from entrepot.runtime.providers.cpu.table import native

Array: TypeAlias = np.ndarray[Any, Any]


@native("Unique", 28)
def unique(X: Array, *, axis: int | None = None, sorted: int = 1) -> tuple[Array, Array, Array, Array]:
    """The distinct elements or slices; where each comes first, which one each input is, and how often each occurs."""
    values, first, inverse, counts = np.unique(X, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        values = np.take(values, order, 0 if axis is None else axis)
        first, inverse, counts = first[order], rank[inverse], counts[order]
    return values, first, inverse, counts


_FEW = 8
"""Up to this many entries, finding one after the other beats a partition."""
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


@native("TopK", 24)
def top_k(X: Array, K: Array, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Array, Array]:
    """The K largest or smallest along ``axis``, in order, and their places; of equal ones the first."""
    count, size = int(K.item()), X.shape[axis]
    if not 0 < count < size // 8 or size < 128 or X.dtype.kind not in "fiu":
        return shared.top_k(NUMPY, X, K, axis=axis, largest=largest, sorted=sorted)
    rows = np.moveaxis(X, axis, -1)
    if count <= _FEW and X.dtype in _FLOATS:
        few = _one_by_one(rows.reshape(-1, size), count, largest)
        if few is not None:
            found, places = (part.reshape(*rows.shape[:-1], count) for part in few)
            return np.moveaxis(found, -1, axis), np.moveaxis(places, -1, axis)
    extreme = _extreme_places(rows.reshape(-1, size), count, largest)
    if extreme is None:
        return shared.top_k(NUMPY, X, K, axis=axis, largest=largest, sorted=sorted)
    places = extreme.reshape(*rows.shape[:-1], count)
    found = np.take_along_axis(rows, places, -1)
    order = NUMPY.argsort(found, -1, descending=bool(largest))
    found, places = np.take_along_axis(found, order, -1), np.take_along_axis(places, order, -1)
    return np.moveaxis(found, -1, axis), np.moveaxis(places, -1, axis)


def _one_by_one(rows: Array, count: int, largest: int) -> tuple[Array, Array] | None:
    """Per row its ``count`` extreme entries in order and their places; ``None`` when one is NaN or infinite."""
    spent = np.array(-np.inf if largest else np.inf, rows.dtype)
    if count > 1:
        rows = rows.copy()
    pick = rows.argmax if largest else rows.argmin
    found, places = np.empty((len(rows), count), rows.dtype), np.empty((len(rows), count), np.int64)
    every = np.arange(len(rows))
    for index in range(count):
        place = places[:, index] = pick(axis=1)
        found[:, index] = rows[every, place]
        if index + 1 < count:
            rows[every, place] = spent
    return (found, places) if np.isfinite(found).all() else None


def _extreme_places(rows: Array, count: int, largest: int) -> Array | None:
    """Per row the places of its ``count`` extreme entries, ascending; ``None`` when NaN is among them."""
    if not rows.size:
        return None
    border = rows.shape[1] - count if largest else count - 1
    limit = np.partition(rows, border, axis=1)[:, border : border + 1]
    chosen = rows >= limit if largest else rows <= limit
    if np.count_nonzero(chosen) != rows.shape[0] * count:  # equal ones at the limit: keep the first
        beyond = rows > limit if largest else rows < limit
        equal = rows == limit
        missing = count - np.count_nonzero(beyond, axis=1, keepdims=True)
        chosen = beyond | (equal & (np.cumsum(equal, axis=1) <= missing))
    if np.any(np.count_nonzero(chosen, axis=1) != count):
        return None
    return np.nonzero(chosen)[1]
