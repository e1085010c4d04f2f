"""Activations in place and by blocks: the shared formulas make a new array at every step."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.runtime.providers.cpu.table import native

Array = np.ndarray[Any, Any]


@native("Relu", 14)
def relu(X: Array) -> Array:
    """max(0, x); NaN stays."""
    return np.maximum(X, X.dtype.type(0))
