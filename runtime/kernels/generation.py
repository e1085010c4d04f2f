"""Arrays made from a size: constants, ranges, diagonals, one-hot rows, triangles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.axes import counted
from entrepot.runtime.kernels.backend import Array, Backend, HostArray
from entrepot.runtime.kernels.precision import is_floating, stash_dtype, widen
from entrepot.runtime.kernels.table import shared

_INT64 = np.dtype(np.int64)


@shared("ConstantOfShape", 25)
def constant_of_shape(xp: Backend, input: HostArray, *, value: np.ndarray[Any, Any] | None = None) -> Array:
    """One value everywhere; float32 zero unless another is given."""
    shape = input.tolist()
    if value is None:
        return xp.full(shape, 0, np.dtype(np.float32))
    return xp.full(shape, value.reshape(-1)[0], value.dtype)


@shared("Range", 27)
def range_(xp: Backend, start: HostArray, limit: HostArray, delta: HostArray, *, stash_type: int = 1) -> Array:
    """``start + i * delta`` while it is before ``limit``."""
    dtype = start.dtype
    first, last, step = (value.reshape(()) for value in (start, limit, delta))
    if not step:
        raise InputError("Range: delta is 0")
    if not is_floating(dtype):
        return xp.arange(int(first), int(last), int(step), dtype)
    wide = dtype if dtype in (np.float32, np.float64) else stash_dtype(dtype, stash_type)
    count = max(math.ceil((float(last) - float(first)) / float(step)), 0)
    places = xp.astype(xp.arange(0, count, 1, _INT64), wide)
    return xp.astype(xp.asarray(first.astype(wide)) + places * xp.asarray(step.astype(wide)), dtype)


@shared("EyeLike", 22)
def eye_like(xp: Backend, input: Array, *, dtype: int | None = None, k: int = 0) -> Array:
    """Ones on the k-th diagonal of a matrix shaped like ``input``."""
    rows, columns = xp.shape(input)
    made = xp.dtype(input) if dtype is None else np.dtype(ir.DataType(dtype).numpy())
    row, column = _grid(xp, rows, columns)
    return xp.astype(column - row == xp.scalar(k, like=row), made)


@shared("Trilu", 14)
def trilu(xp: Backend, input: Array, k: HostArray | None = None, *, upper: int = 1) -> Array:
    """The part of every matrix on and above its k-th diagonal, or on and below it; zero elsewhere."""
    shape = xp.shape(input)
    row, column = _grid(xp, shape[-2], shape[-1])
    diagonal = xp.scalar(0 if k is None else int(k.item()), like=row)
    keep = column - row >= diagonal if upper else column - row <= diagonal
    return xp.where(keep, input, xp.scalar(0, like=input))


def _grid(xp: Backend, rows: int, columns: int) -> tuple[Array, Array]:
    row, column = (xp.arange(0, size, 1, _INT64) for size in (rows, columns))
    return xp.expand_dims(row, 1), xp.expand_dims(column, 0)


@shared("OneHot", 28)
def one_hot(xp: Backend, indices: Array, depth: HostArray, values: Array, *, axis: int = -1) -> Array:
    """A new axis of ``depth`` entries, "on" where the index says; an index out of range is "off" everywhere."""
    size = int(depth.item())
    rank = len(xp.shape(indices)) + 1
    along = counted(axis, rank)
    places = xp.astype(widen(xp, indices), _INT64)
    places = xp.where(places < xp.scalar(0, like=places), places + xp.scalar(size, like=places), places)
    classes = xp.reshape(xp.arange(0, size, 1, _INT64), [-1 if n == along else 1 for n in range(rank)])
    off, on = (xp.reshape(value, ()) for value in xp.split(values, (1, 1), 0))
    return xp.where(xp.expand_dims(places, along) == classes, on, off)
