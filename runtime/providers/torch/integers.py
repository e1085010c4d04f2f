"""Products of integers on devices, whose libraries have none: exact in float64, from pieces of sixteen bits."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_BITS = 16

_LONGEST = 1 << 20
"""Products of two pieces, each below 2 to the 32nd, whose sum float64 holds exactly."""


def matmul(x: Tensor, y: Tensor) -> Tensor:
    """The product of the last two axes, which wraps; signed, or what fits there."""
    length = x.shape[-1]
    if length <= _LONGEST or y.shape[-2 if y.ndim > 1 else 0] != length:
        return bilinear(torch.matmul, x, y)
    axis = -2 if y.ndim > 1 else 0
    parts = zip(x.split(_LONGEST, -1), y.split(_LONGEST, axis), strict=True)
    return torch.stack([bilinear(torch.matmul, a, b) for a, b in parts]).sum(0, dtype=x.dtype)


def bilinear(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
    """A function that sums products of an element of each, at most 2 to the 20th of them, in the type of ``x``."""
    left, right = _pieces(x), _pieces(y)
    total: Tensor | None = None
    for i, a in enumerate(left):
        for j, b in enumerate(right[: len(right) - i]):  # what is shifted further is lost
            term = function(a, b).to(torch.int64) << _BITS * (i + j)
            total = term if total is None else total + term
    assert total is not None
    return total.to(x.dtype)


def _pieces(x: Tensor) -> list[Tensor]:
    """The lowest bits first."""
    whole, count = x.to(torch.int64), max(1, 8 * x.element_size() // _BITS)
    return [((whole >> _BITS * at) & ((1 << _BITS) - 1)).double() for at in range(count)]
