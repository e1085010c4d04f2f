"""Formulas of many steps, computed a block at a time so that every step finds its operands in the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

BLOCK = 1 << 15
"""Elements per block: 128 KiB of float32, so that a block, its result and a buffer stay in a 512 KiB cache."""


def blockwise(x: Array, formula: Callable[[Array, Array, Array], object]) -> Array:
    """``formula(x, out, buffer)`` over blocks of ``x``; it writes ``out`` and may use ``buffer``, both like ``x``."""
    x = np.asarray(x, order="C")
    out = np.empty(x.shape, x.dtype)
    source, target = x.reshape(-1), out.reshape(-1)
    buffer = np.empty(min(x.size, BLOCK), x.dtype)
    for start in range(0, x.size, BLOCK):
        block = source[start : start + BLOCK]
        formula(block, target[start : start + BLOCK], buffer[: block.size])
    return out
