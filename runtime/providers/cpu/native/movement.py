"""Shape and movement through the arrays' own methods: a fraction of the time of NumPy's functions around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from entrepot.runtime.kernels import movement
from entrepot.runtime.kernels.shape import resolve_shape
from entrepot.runtime.providers.cpu.backend import NUMPY
from entrepot.runtime.providers.cpu.table import native

Array = np.ndarray[Any, Any]


@native("Reshape", 25)
def reshape(data: Array, shape: Array, *, allowzero: int = 0) -> Array:
    """The same elements in another shape."""
    return data.reshape(resolve_shape(data.shape, shape.tolist(), allowzero))


@native("Transpose", 25)
def transpose(data: Array, *, perm: Sequence[int] | None = None) -> Array:
    """The axes in the order ``perm``; reversed without it."""
    return data.transpose(perm)  # type: ignore[arg-type]  # None is what it takes for "reversed"


@native("Slice", 13)
def slice_(data: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None) -> Array:
    """From start to end by step on some axes, as a view."""
    cut = [slice(None)] * data.ndim
    for axis, wanted in movement.slices(NUMPY, starts, ends, axes, steps):
        cut[axis] = wanted
    return data[tuple(cut)]


@native("Gather", 13)
def gather(data: Array, indices: Array, *, axis: int = 0) -> Array:
    """Whole slices along ``axis``; the axes of ``indices`` take its place."""
    return np.asarray(data.take(indices, axis))
