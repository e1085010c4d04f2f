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
from entrepot.runtime.blas import product
from entrepot.runtime.threads import WORTH, each, one_blas_thread

Array: TypeAlias = np.ndarray[Any, Any]
Part: TypeAlias = tuple[slice, slice]

ALONE = 1 << 18
"""Up to this many multiplications, OpenBLAS uses one thread of its own accord."""

ALONE_BY_VECTOR = 9216
"""Up to this many elements of the matrix, it multiplies a vector on one thread."""

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

    def make(part: Part) -> None:
        tile = y[part]
        product(A[part[0]], B[:, part[1]], tile)
        if finish is not None:
            finish(tile, part)

    with one_blas_thread:
        each(make, parts(rows, columns, depth), rows * columns * depth)
    return y


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
