"""Shape and movement through the arrays' own methods: a fraction of the time of NumPy's functions around them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from entrepot.runtime.kernels import gather as shared_gather
from entrepot.runtime.kernels import movement
from entrepot.runtime.kernels.shape import resolve_shape
from entrepot.runtime.providers.cpu.backend import NUMPY
from entrepot.runtime.providers.cpu.blocks import SMALL
from entrepot.runtime.providers.cpu.table import native

Array = np.ndarray[Any, Any]


@native("Reshape", 25)
def reshape(data: Array, shape: Array, *, allowzero: int = 0) -> Array:
    """The same elements in another shape."""
    return data.reshape(resolve_shape(data.shape, shape.tolist(), allowzero))


@native("Transpose", 25)
def transpose(data: Array, *, perm: Sequence[int] | None = None) -> Array:
    """The axes in the order ``perm``; reversed without it."""
    return data.transpose(perm)


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


@native("Flatten", 25)
def flatten(input: Array, *, axis: int = 1) -> Array:
    """Two axes: the product of the sizes before ``axis``, and of the rest."""
    shape = input.shape
    cut = axis + len(shape) if axis < 0 else axis
    return input.reshape(math.prod(shape[:cut]), math.prod(shape[cut:]))


@native("Expand", 13)
def expand(input: Array, shape: Array) -> Array:
    """Broadcast with ``shape``, in both directions: as a view where that saves memory."""
    wanted = np.broadcast_shapes(input.shape, tuple(shape.tolist()))
    if wanted == input.shape:
        return input
    if math.prod(wanted) > SMALL:
        return np.broadcast_to(input, wanted)
    result = np.empty(wanted, input.dtype)
    result[...] = input
    return result


@native("GatherElements", 13)
def gather_elements(data: Array, indices: Array, *, axis: int = 0) -> Array:
    """One element per index, by its place in memory."""
    if data.dtype.kind == "O" or not data.flags.c_contiguous or not indices.size:
        return shared_gather.gather_elements(NUMPY, data, indices, axis=axis)
    size, along = data.shape[axis], axis % data.ndim
    places = np.where(indices < 0, indices + size, indices).astype(np.int64, copy=False)
    if places.min() < 0 or places.max() >= size:
        raise IndexError(f"indices from {indices.min()} to {indices.max()} into axis {axis} of {size} entries")
    steps = [math.prod(data.shape[n + 1 :]) for n in range(data.ndim)]
    places = places * steps[along]
    for n, reach in enumerate(indices.shape):
        if n != along:
            places += (np.arange(reach) * steps[n]).reshape([-1 if m == n else 1 for m in range(data.ndim)])
    return data.reshape(-1).take(places)
