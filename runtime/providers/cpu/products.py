"""Matrix products: those BLAS would spread over all processors go over the session's threads instead.

A large product is made in parts that depend on its sizes alone, so that the result does not depend on the threads.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime import room
from entrepot.runtime.blas import is_tuned, is_wide, product
from entrepot.runtime.threads import WORTH, each, one_blas_thread

Array: TypeAlias = np.ndarray[Any, Any]
Part: TypeAlias = tuple[slice, slice]

ALONE = 1 << 18
"""Up to this many multiplications, OpenBLAS uses one thread of its own accord."""

ALONE_BY_VECTOR = 9216
"""Up to this many elements of the matrix, it multiplies a vector on one thread."""

_MATRIX = 1 << 18
"""Elements of a matrix from which OpenBLAS takes longer to arrange it for a product than to read it once more."""

_BLOCK = 1 << 20
"""Elements of those of its columns that stay in the cache from one row of the other matrix to the next."""

_ALIGNED = 64
"""Columns that OpenBLAS takes together."""

_PARTS = 8
_BLAS = (np.dtype(np.float32), np.dtype(np.float64))
_NARROWEST = 96


def is_alone(A: Array, B: Array) -> bool:
    """Whether BLAS uses one thread for a product without being told."""
    return A.size * B.shape[-1] <= ALONE and max(A.size, B.size) < ALONE_BY_VECTOR


def parts(rows: int, columns: int, depth: int) -> list[Part]:
    """Rows and columns of the result of a product that are computed together, cut along the longer side."""
    longer = max(rows, columns)
    count = max(1, min(_PARTS, rows * columns * depth // WORTH, longer // _NARROWEST))
    count = 1 << (count.bit_length() - 1)  # even shares for two and four threads; every part costs a little
    ends = [longer * index // count for index in range(count + 1)]
    cuts = [slice(start, stop) for start, stop in itertools.pairwise(ends)]
    whole = slice(None)
    return [(cut, whole) for cut in cuts] if rows >= columns else [(whole, cut) for cut in cuts]


def dense(A: Array, B: Array, finish: Callable[[Array, Part], object] | None = None) -> Array:
    """The product of two matrices; ``finish`` changes each part of it in place."""
    rows, depth, columns = A.shape[0], A.shape[1], B.shape[1]
    y = room.empty((rows, columns), A.dtype)
    multiply = by_rows if 1 < rows <= most_rows(B) else product

    def make(part: Part) -> None:
        tile = y[part]
        multiply(A[part[0]], B[:, part[1]], tile)
        if finish is not None:
            finish(tile, part)

    with one_blas_thread:
        each(make, parts(rows, columns, depth), rows * columns * depth)
    return y


def most_rows(B: Array) -> int:
    """Rows of a matrix up to which their products by B are faster one by one."""
    if B.size < _MATRIX or B.dtype != np.float32 or not B.flags.c_contiguous or not is_tuned():
        return 0
    return 4 if is_wide() and B.shape[1] >= B.shape[0] else 3


def by_rows(A: Array, B: Array, out: Array) -> None:
    """The product, row by row: each time by as many columns of B as stay in the cache."""
    step = max(1, _BLOCK // (len(B) * _ALIGNED)) * _ALIGNED
    rows, results = A[:, None], out[:, None]
    for start in range(0, B.shape[1], step):
        np.matmul(rows, B[:, start : start + step], out=results[:, :, start : start + step])


def matmul(A: Array, B: Array) -> Array:
    """``numpy.matmul``, its stacks spread over threads where that is worth it."""
    if min(A.ndim, B.ndim) < 2 or A.dtype not in _BLAS or is_alone(A, B):
        return np.matmul(A, B)
    if A.ndim == B.ndim == 2 and A.dtype == B.dtype and A.shape[1] == B.shape[0]:
        return dense(A, B)
    room.claim((*np.broadcast_shapes(A.shape[:-2], B.shape[:-2]), A.shape[-2], B.shape[-1]), A.dtype.itemsize)
    work = A.size * B.shape[-1] * (math.prod(B.shape[:-2]) // max(math.prod(A.shape[:-2]), 1) or 1)
    with one_blas_thread:
        if work < WORTH or A.shape[:-2] != B.shape[:-2] or A.shape[-1] != B.shape[-2] or A.dtype != B.dtype:
            return np.matmul(A, B)
        return _stack(A, B, work)


def _stack(A: Array, B: Array, work: int) -> Array:
    y = room.empty((*A.shape[:-1], B.shape[-1]), A.dtype)
    places: Sequence[tuple[int, ...]] = list(np.ndindex(*A.shape[:-2]))

    def make(place: tuple[int, ...]) -> None:
        product(A[place], B[place], y[place])

    each(make, places, work)
    return y
