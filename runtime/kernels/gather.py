"""Elements picked by index. Negative indices count from the end."""

from __future__ import annotations

import math

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.axes import counted
from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.table import shared

_INT64 = np.dtype(np.int64)


@shared("Gather", 13)
def gather(xp: Backend, data: Array, indices: Array, *, axis: int = 0) -> Array:
    """Whole slices along ``axis``; the axes of ``indices`` take its place."""
    return xp.take(data, indices, axis)


@shared("GatherElements", 13)
def gather_elements(xp: Backend, data: Array, indices: Array, *, axis: int = 0) -> Array:
    """One element per index: from the index's own place, with its coordinate along ``axis`` replaced."""
    axis = counted(axis, len(xp.shape(data)))
    check_reach(xp.shape(data), xp.shape(indices), axis)
    reach = tuple(slice(None) if n == axis else slice(size) for n, size in enumerate(xp.shape(indices)))
    return xp.take_along_axis(data[reach], indices, axis)


def check_reach(shape: tuple[int, ...], reach: tuple[int, ...], axis: int) -> None:
    """Refuse indices of a shape that reaches beyond the data on an axis other than ``axis``."""
    if len(reach) != len(shape) or any(n != axis and reach[n] > size for n, size in enumerate(shape)):
        raise InputError(f"indices of shape {tuple(reach)} reach beyond data of shape {tuple(shape)}")


@shared("GatherND", 13)
def gather_nd(xp: Backend, data: Array, indices: Array, *, batch_dims: int = 0) -> Array:
    """Slices or elements at the coordinates along the last axis of ``indices``, per batch."""
    return xp.index(data, coordinates(xp, xp.shape(data), indices, batch_dims))


def coordinates(xp: Backend, shape: tuple[int, ...], indices: Array, batch_dims: int = 0) -> list[Array]:
    """One index array per leading axis: the batch's own places, then the columns of ``indices``."""
    outer = xp.shape(indices)[:-1]
    depth = xp.shape(indices)[-1]
    if not depth or batch_dims + depth > len(shape):
        raise InputError(f"{depth} coordinates after {batch_dims} batch axes do not fit shape {tuple(shape)}")
    batch = [
        xp.reshape(xp.arange(0, outer[axis], 1, _INT64), [-1 if n == axis else 1 for n in range(len(outer))])
        for axis in range(batch_dims)
    ]
    return batch + [indices[..., n] for n in range(depth)]


@shared("Compress", 28)
def compress(xp: Backend, input: Array, condition: Array, *, axis: int | None = None) -> Array:
    """The slices along ``axis``, or the elements, at which the condition holds."""
    (places,) = xp.nonzero(condition)
    if axis is None:
        return xp.take(xp.reshape(input, (math.prod(xp.shape(input)),)), places, 0)
    return xp.take(input, places, axis)
