"""What an array's shape is, and other shapes for the same elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.axes import counted
from entrepot.runtime.kernels.backend import Array, Backend, HostArray
from entrepot.runtime.kernels.table import shared

_INT64 = np.dtype(np.int64)


@shared("Shape", 25)
def shape_of(xp: Backend, data: Array, *, start: int = 0, end: int | None = None) -> Array:
    """The sizes of the axes from ``start`` up to ``end``, as int64."""
    return xp.asarray(np.array(xp.shape(data)[start:end], np.int64))


@shared("Size", 25)
def size_of(xp: Backend, data: Array) -> Array:
    """The number of elements, as a 0-d int64."""
    return xp.asarray(np.array(math.prod(xp.shape(data)), np.int64))


@shared("Identity", 25)
def identity(xp: Backend, input: Array) -> Array:
    """The input itself."""
    return input


@shared("Reshape", 25)
def reshape(xp: Backend, data: Array, shape: HostArray, *, allowzero: int = 0) -> Array:
    """The same elements in another shape: -1 is worked out, 0 is copied from ``data`` unless ``allowzero`` is set."""
    return xp.reshape(data, resolve_shape(xp.shape(data), shape.tolist(), allowzero))


def resolve_shape(source: Sequence[int], wanted: Sequence[int], allowzero: int = 0) -> list[int]:
    """``wanted`` with its 0 and -1 entries replaced by what they stand for."""
    shape = list(wanted)
    if min(shape, default=0) < -1:
        raise InputError(f"cannot reshape an array to {shape}: only -1 stands for what is left")
    copied: set[int] = set()
    if not allowzero and 0 in shape:
        copied = {axis for axis, size in enumerate(shape) if size == 0}
        if max(copied) >= len(source):
            raise InputError(f"Reshape to {shape} copies an axis that shape {tuple(source)} does not have")
        shape = [source[axis] if axis in copied else size for axis, size in enumerate(shape)]
    if -1 in shape:
        # copied axes count on neither side, so that the rest stays well defined when one of them is empty
        left = math.prod(size for axis, size in enumerate(source) if axis not in copied)
        known = math.prod(size for axis, size in enumerate(shape) if axis not in copied and size != -1)
        if known == 0 or left % known:
            raise InputError(f"cannot reshape an array of shape {tuple(source)} to {list(wanted)}")
        shape[shape.index(-1)] = left // known
    return shape


@shared("Flatten", 25)
def flatten(xp: Backend, input: Array, *, axis: int = 1) -> Array:
    """Two axes: the product of the sizes before ``axis``, and of the rest."""
    shape = xp.shape(input)
    axis = len(shape) if axis == len(shape) else counted(axis, len(shape))
    return xp.reshape(input, (math.prod(shape[:axis]), math.prod(shape[axis:])))


@shared("Squeeze", 25)
def squeeze(xp: Backend, data: Array, axes: HostArray | None = None) -> Array:
    """Without the axes of size 1 named, or without all of them."""
    if axes is None:
        return xp.squeeze(data)
    return xp.squeeze(data, tuple(axes.tolist()))


@shared("Unsqueeze", 25)
def unsqueeze(xp: Backend, data: Array, axes: HostArray) -> Array:
    """With axes of size 1 at these places of the result."""
    return xp.expand_dims(data, tuple(axes.reshape(-1).tolist()))


@shared("Expand", 13)
def expand(xp: Backend, input: Array, shape: HostArray) -> Array:
    """Broadcast with ``shape``, in both directions."""
    return xp.broadcast_to(input, np.broadcast_shapes(xp.shape(input), tuple(shape.tolist())))
