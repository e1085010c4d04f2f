"""Shape and movement through the arrays' own methods: a fraction of the time of NumPy's functions around them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from entrepot.runtime import room
from entrepot.runtime.kernels import gather as shared_gather
from entrepot.runtime.kernels import generation, movement
from entrepot.runtime.kernels.axes import counted
from entrepot.runtime.kernels.shape import resolve_shape
from entrepot.runtime.providers.cpu.backend import NUMPY
from entrepot.runtime.providers.cpu.blocks import SMALL
from entrepot.runtime.providers.cpu.table import native

Array = np.ndarray[Any, Any]


@native("Reshape", 25)
def reshape(data: Array, shape: Array, *, allowzero: int = 0) -> Array:
    """The same elements in another shape."""
    wanted = shape.tolist()
    if data.size and 0 not in wanted and min(wanted, default=0) >= -1:
        return data.reshape(wanted)
    return data.reshape(resolve_shape(data.shape, wanted, allowzero))


@native("Transpose", 25)
def transpose(data: Array, *, perm: Sequence[int] | None = None) -> Array:
    """The axes in the order ``perm``; reversed without it."""
    return data.transpose(perm)


@native("Slice", 13)
def slice_(data: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None) -> Array:
    """From start to end by step on some axes, as a view."""
    cut = [slice(None)] * data.ndim
    for axis, wanted in movement.slices(data.ndim, starts, ends, axes, steps):
        cut[axis] = wanted
    return data[tuple(cut)]


@native("Gather", 13)
def gather(data: Array, indices: Array, *, axis: int = 0) -> Array:
    """Whole slices along ``axis``; the axes of ``indices`` take its place."""
    room.claim((indices.size,), data.nbytes // max(data.shape[axis], 1))
    return np.asarray(data.take(indices, axis))


@native("Flatten", 25)
def flatten(input: Array, *, axis: int = 1) -> Array:
    """Two axes: the product of the sizes before ``axis``, and of the rest."""
    shape = input.shape
    cut = len(shape) if axis == len(shape) else counted(axis, len(shape))
    return input.reshape(math.prod(shape[:cut]), math.prod(shape[cut:]))


@native("Expand", 13)
def expand(input: Array, shape: Array) -> Array:
    """Broadcast with ``shape``, in both directions: as a view where that saves memory."""
    wanted = np.broadcast_shapes(input.shape, tuple(shape.tolist()))
    if wanted == input.shape:
        return input
    room.claim(wanted, input.dtype.itemsize)
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
    along = counted(axis, data.ndim)
    size = data.shape[along]
    shared_gather.check_reach(data.shape, indices.shape, along)
    places = np.where(indices < 0, indices + size, indices).astype(np.int64, copy=False)
    if places.min() < 0 or places.max() >= size:
        raise IndexError(f"indices from {indices.min()} to {indices.max()} into axis {axis} of {size} entries")
    steps = [math.prod(data.shape[n + 1 :]) for n in range(data.ndim)]
    places = places * steps[along]
    for n, reach in enumerate(indices.shape):
        if n != along:
            places += (np.arange(reach) * steps[n]).reshape([-1 if m == n else 1 for m in range(data.ndim)])
    return data.reshape(-1).take(places)


@native("Split", 18)
def split(
    input: Array, split: Array | None = None, *, axis: int = 0, num_outputs: int | None = None, n_outputs: int = 1
) -> tuple[Array, ...]:
    """Parts along ``axis``, as views: of the sizes given, or equal ones, of which the last may be smaller."""
    size = input.shape[axis]
    sizes = movement.equal_parts(size, num_outputs or n_outputs) if split is None else split.tolist()
    if sum(sizes) != size or min(sizes, default=0) < 0:
        return movement.split(NUMPY, input, split, axis=axis, n_outputs=n_outputs)  # raises the error that says why
    before, parts, end = (slice(None),) * (axis % input.ndim), [], 0
    for part in sizes:
        parts.append(input[(*before, slice(end, end + part))])
        end += part
    return tuple(parts)


@native("Shape", 25)
def shape_of(data: Array, *, start: int = 0, end: int | None = None) -> Array:
    """The sizes of the axes from ``start`` up to ``end``, as int64."""
    return np.array(data.shape[start:end], np.int64)


@native("Range", 27)
def range_(start: Array, limit: Array, delta: Array, *, stash_type: int = 1) -> Array:
    """``start + i * delta`` while it is before ``limit``."""
    if start.dtype.kind not in "iu" or not delta:
        return generation.range_(NUMPY, start, limit, delta, stash_type=stash_type)
    return NUMPY.arange(start.item(), limit.item(), delta.item(), start.dtype)
