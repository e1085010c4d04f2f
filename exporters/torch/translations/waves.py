"""Fourier transforms of few elements as products with waves, where their number is known and no power of two.

There onnxruntime's DFT (1.31) of float32 is less exact, see ``fourier``.
"""

from __future__ import annotations

import math
from typing import Any

import torch

_MOST = 768
"""Beyond it, a product takes longer."""


def is_product(size: Any) -> bool:
    """Whether a transform of so many elements is better made as a product."""
    return isinstance(size, int) and size <= _MOST and not is_power_of_two(size)


def is_power_of_two(size: Any) -> bool:
    """Whether onnxruntime's DFT is exact for so many elements, or for none."""
    return isinstance(size, int) and size & (size - 1) == 0


def waves(size: int, count: int, normalization: int, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What each element adds to each of the first ``count`` results: cosines and sines, from angles below a whole turn.

    Args:
        size: The number of elements.
        count: The number of results.
        normalization: By what torch divides: 0 for nothing, 1 for the root of the size, 2 for the size.
        like: Has the dtype.
    """
    place = torch.arange(size)
    turns = (place.unsqueeze(-1) * place[:count] % size).to(like.dtype) * (2 * math.pi / size)
    by = (1.0, math.sqrt(size), float(size))[normalization]
    cosines, sines = turns.cos(), turns.sin()
    return (cosines, sines) if by == 1.0 else (cosines / by, sines / by)


def along(x: torch.Tensor, axis: int, wave: torch.Tensor) -> torch.Tensor:
    """The product along one axis; torch would repeat the waves for what is not contiguous."""
    return (x.transpose(axis, -1).contiguous() @ wave).transpose(axis, -1)
