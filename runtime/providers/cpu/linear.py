"""A product by a constant matrix, and what is added to it, in one pass over the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime.providers.cpu.epilogues import Activation
from entrepot.runtime.providers.cpu.products import Part, dense, is_alone

Array: TypeAlias = np.ndarray[Any, Any]

_BLAS = (np.dtype(np.float32), np.dtype(np.float64))


def linear(weight: Array, bias: Array, activate: Activation | None) -> Callable[..., Array] | None:
    """``activate(x @ weight + bias) [+ residual]``; ``None`` where weight and bias are not a BLAS matrix and a row."""
    if weight.ndim != 2 or weight.dtype not in _BLAS or bias.dtype != weight.dtype:
        return None
    if bias.shape not in ((weight.shape[1],), (1, weight.shape[1])):
        return None
    packed = np.ascontiguousarray(weight)
    row = bias.reshape(1, -1)
    size = weight.shape[1]

    def finish(tile: Array, part: Part) -> None:
        np.add(tile, row[:, part[1]], tile)

    def product(x: Array) -> Array:
        if not is_alone(x, packed):
            return dense(x, packed, finish)
        y = x.dot(packed)
        return np.add(y, row, y)

    def run(x: Array, _weight: Array, _bias: Array, residual: Array | None = None) -> Array:
        shape = x.shape
        if len(shape) == 1 or not x.size:
            y = np.matmul(x, packed) + bias.reshape(-1)
        else:
            y = product(x.reshape(-1, shape[-1])).reshape(*shape[:-1], size)
        if activate is not None:
            activate(y)
        if residual is None:
            return y
        return np.add(y, residual, y) if residual.shape == y.shape else y + residual

    return run
