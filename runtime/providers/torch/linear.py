"""A product by a constant matrix, and what is added to it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from entrepot.runtime import room
from entrepot.runtime.providers.torch import heap, private, vectors
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
    few, worthwhile = (0, WORTHWHILE_NARROW) if vectors.is_mkl_narrow() else (FEW, WORTHWHILE)
    least = max(few + 1, worthwhile // max(weights.size, 1))
    is_worthwhile = weights.size >= LEAST and (rows == 0 or rows >= least)
    packed = _packed(weights, bias, rows) if is_worthwhile else None
    plain = _plain(weights, bias, in_order=rows != 1 and (packed is None or not rows))
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
            y = plain(x)
        else:
            y = plain(x.reshape(math.prod(shape[:-1]), shape[-1])).reshape(*shape[:-1], outer)
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
    like = tensor_of(weights).t()
    run, packed, row = made.run, made.pack(like.contiguous(), rows), None if bias is None else tensor_of(bias)
    if (memory := private.memory_of(packed)) is not None:
        heap.gather(*memory)

    def product(x: Tensor) -> Tensor:
        return run(x, packed, like, row, rows)

    return product


def _plain(weights: HostArray, bias: HostArray | None, *, in_order: bool) -> Product:
    """By torch's public function; BLAS reads the rows of several products fastest in order of memory."""
    matrix = tensor_of(np.ascontiguousarray(weights) if in_order else weights)
    if bias is None:
        mm = torch.mm
        return lambda x: mm(x, matrix)
    addmm, row = torch.addmm, tensor_of(bias)
    return lambda x: addmm(row, x, matrix)
