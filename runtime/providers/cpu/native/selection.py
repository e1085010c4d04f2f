"""What NumPy has as one function, or sorts faster than a whole sort."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.runtime.providers.cpu.table import native

Array = np.ndarray[Any, Any]


@native("Unique", 28)
def unique(X: Array, *, axis: int | None = None, sorted: int = 1) -> tuple[Array, Array, Array, Array]:
    """The different elements or slices; where each comes first, which one each was, how many there are of each."""
    values, first, inverse, counts = np.unique(X, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        values = np.take(values, order, 0 if axis is None else axis)
        first, inverse, counts = first[order], rank[inverse], counts[order]
    return values, first, inverse, counts
