"""A product by a constant matrix, and what is added to it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from entrepot.runtime import heap, room
from entrepot.runtime.providers.torch import private, vectors
from entrepot.runtime.providers.torch.dtypes import tensor_of
from entrepot.runtime.providers.torch.epilogues import Activation

HostArray: TypeAlias = np.ndarray[Any, Any]
Product: TypeAlias = Callable[[Tensor], Tensor]

FEW = 16
"""Up to so many rows memory is read for each weight and little is computed: packing does not help."""

LEAST = 1 << 12
"""Elements of a matrix below which it stays in the fastest cache however it lies there."""

WORTHWHILE = 1 << 21
"""Multiplications from which the look-up that packed kernels do is small beside the product."""

WORTHWHILE_NARROW = 1 << 20
"""The same where the product beside which it is small is MKL's, and slow, be it of a single row."""

LARGE = 1 << 18
"""Elements of a matrix that takes so long to read that packing helps even a single row, where MKL is slow."""

SLOW_ROWS, FAST_ROWS = 2, 4
"""Rows of a product by a large matrix: oneDNN reads it faster for four than for one or two (torch 2.13, an EPYC)."""

WIDE = 2
"""How many times as many columns as rows a matrix has by which MKL multiplies one row fastest, for it adds rows up."""


def by_constant(
    weights: HostArray, bias: HostArray | None, rows: int = 0, activation: Activation | None = None
) -> Callable[..., Tensor]:
    """``x @ weights + bias`` and its activation for x of any rank, by a matrix of float32.

    The callable takes x, then the constants, which it does not look at.

    Args:
        weights: Of shape (in, out).
        bias: Of shape (out,).
        rows: How many rows x has in all, if that is declared; else 0.
        activation: Its end.
    """
    inner, outer = weights.shape
    least = least_rows(inner, outer)
    is_worthwhile = weights.size >= LEAST and (rows == 0 or rows >= least)
    packed = _packed(weights, bias, rows) if is_worthwhile else None
    unpacked = plain(weights, bias, in_order=_reads_rows(inner, outer, rows) and (packed is None or not rows))
    fewest, most = (least * inner, sys.maxsize) if rows == 0 else (rows * inner, rows * inner)
    change = None if activation is None else activation.change
    roomy = room.SMALL * inner // (4 * max(outer, 1))

    def run(x: Tensor, *_: Tensor | None) -> Tensor:
        size, shape = x.numel(), x.shape
        if size > roomy:
            room.claim((*shape[:-1], outer), 4)
        if packed is not None and fewest <= size <= most and shape[-1] == inner:
            y = packed(x)
        elif len(shape) == 2:
            y = unpacked(x)
        else:
            y = unpacked(x.reshape(math.prod(shape[:-1]), shape[-1])).reshape(*shape[:-1], outer)
        if change is not None:
            change(y)
        return y

    return run


def and_added(product: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The product, to which something is added that is given last; it should have the shape of the result."""

    def run(x: Tensor, weights: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
        y = product(x)
        return y.add_(residual) if residual.shape == y.shape else y + residual

    return run


def _packed(weights: HostArray, bias: HostArray | None, rows: int) -> Product | None:
    made = (private.linear_of_rows() if rows and not vectors.is_mkl_narrow() else None) or private.linear()
    if made is None:
        return None
    product = packed_by(made, weights, bias, rows)
    return with_more_rows(product, *weights.shape) if vectors.is_mkl_narrow() and weights.size >= LARGE else product


def least_rows(inner: int, outer: int) -> int:
    """Rows from which a product by packed weights is faster."""
    if not vectors.is_mkl_narrow():
        return max(FEW + 1, WORTHWHILE // max(inner * outer, 1))
    if inner * outer < LARGE:
        return max(1, WORTHWHILE_NARROW // max(inner * outer, 1))
    return 2 if outer >= WIDE * inner else 1


def _reads_rows(inner: int, outer: int, rows: int) -> bool:
    """Whether BLAS reads a matrix fastest by rows, as it does but for a single row of x by one that is not wide."""
    return rows != 1 or (vectors.is_mkl_narrow() and outer >= WIDE * inner)


def with_more_rows(product: Product, inner: int, outer: int) -> Product:
    """The product, given zeros for the rows that x lacks of a number that is multiplied fast."""
    slow = SLOW_ROWS * inner

    def run(x: Tensor) -> Tensor:
        if x.numel() > slow:
            return product(x)
        rows = x.reshape(-1, inner)
        y = product(torch.constant_pad_nd(rows, [0, 0, 0, FAST_ROWS - rows.shape[0]]))
        return y[: rows.shape[0]].reshape(*x.shape[:-1], outer)

    return run


def packed_by(made: private.Linear, weights: HostArray, bias: HostArray | None, rows: int) -> Product:
    """The product for x of any rank, by weights in a library's own layout.

    Args:
        made: The library's.
        weights: Of shape (in, out).
        bias: Of shape (out,).
        rows: How many rows x has in all; 0 if that varies.
    """
    like = tensor_of(weights).t()
    run, packed, row = made.run, made.pack(like.contiguous(), rows), None if bias is None else tensor_of(bias)
    if (memory := private.memory_of(packed)) is not None:
        heap.gather(*memory)

    def product(x: Tensor) -> Tensor:
        return run(x, packed, like, row, rows)

    return product


def plain(weights: HostArray, bias: HostArray | None, *, in_order: bool) -> Product:
    """The product for a matrix, by torch's public function; BLAS reads several rows fastest in order of memory."""
    matrix = tensor_of(np.ascontiguousarray(weights) if in_order else weights)
    if bias is None:
        mm = torch.mm
        return lambda x: mm(x, matrix)
    addmm, row = torch.addmm, tensor_of(bias)
    return lambda x: addmm(row, x, matrix)
