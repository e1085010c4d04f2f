"""Ways to run elementwise formulas at the speed of the cache rather than that of memory or of branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime.threads import each

Array: TypeAlias = np.ndarray[Any, Any]

BLOCK = 1 << 15
"""Elements per block: 128 KiB of float32, so that a block, its result and a buffer stay in a 512 KiB cache."""

_SPAN = 2 * BLOCK
_COST = 50
"""Cost of a formula per element, in multiplications."""

SMALL = 2048
"""Up to this many elements a plain ufunc call is fastest, whatever it does per element."""

_RANGE: dict[np.dtype[Any], tuple[Array, Array]] = {
    np.dtype(kind): (np.array(-np.inf, kind), np.array(np.inf, kind)) for kind in (np.float16, np.float32, np.float64)
}
_BITS: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.int8),
    2: np.dtype(np.int16),
    4: np.dtype(np.int32),
    8: np.dtype(np.int64),
}


def blockwise(x: Array, formula: Callable[[Array, Array, Array], object]) -> Array:
    """``formula(x, out, buffer)`` over blocks of ``x``; it writes ``out`` and may use ``buffer``, both like ``x``."""
    if x.size <= BLOCK:
        out = np.empty_like(x)
        formula(x, out, np.empty_like(x))
        return out
    x = np.ascontiguousarray(x)
    out = np.empty(x.shape, x.dtype)
    source, target = x.reshape(-1), out.reshape(-1)

    def make(first: int) -> None:
        buffer = np.empty(BLOCK, x.dtype)
        for start in range(first, min(first + _SPAN, x.size), BLOCK):
            block = source[start : start + BLOCK]
            formula(block, target[start : start + BLOCK], buffer[: block.size])

    each(make, range(0, x.size, _SPAN), x.size * _COST)
    return out


# NumPy's maximum and minimum with a scalar are not vectorised; its clip is, and takes a third of the time.


def maximum(x: Array, y: Array) -> Array:
    """The larger of two arrays of one dtype; NaN wins."""
    limits = _RANGE.get(x.dtype)
    if y.ndim == 0 and x.size > SMALL and limits is not None:
        return x.clip(y, limits[1])
    return np.maximum(x, y)


def minimum(x: Array, y: Array) -> Array:
    """The smaller of two arrays of one dtype; NaN wins."""
    limits = _RANGE.get(x.dtype)
    if y.ndim == 0 and x.size > SMALL and limits is not None:
        return x.clip(limits[0], y)
    return np.minimum(x, y)


def clamp(x: Array, low: Array, high: Array) -> Array:
    """Raise to ``low``, then lower to ``high``, both 0-d of ``x``'s dtype; NaN stays."""
    if x.size > SMALL and x.dtype in _RANGE:
        return x.clip(low, high)
    return np.minimum(np.maximum(x, low), high)


def select(condition: Array, x: Array, y: Array) -> Array:
    """``numpy.where`` for two arrays of one dtype, by masks on their bits.

    There is no branch to mispredict: on random conditions it takes a tenth of the time.
    """
    bits = _BITS.get(x.dtype.itemsize)
    if condition.size <= SMALL or bits is None or x.dtype.kind == "O":
        return np.where(condition, x, y)
    mask = condition.astype(bits)
    np.negative(mask, mask)
    first, second = np.asarray(x).view(bits), np.asarray(y).view(bits)
    # y ^ ((x ^ y) & mask): x where all bits of the mask are set, y where none is
    mixed = np.bitwise_and(np.bitwise_xor(first, second), mask)
    return np.bitwise_xor(mixed, second, mixed).view(x.dtype)
