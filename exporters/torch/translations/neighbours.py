"""The next number of a floating-point format, from the next wider one."""

from __future__ import annotations

import math
from typing import Any

import torch

_STEP = 0.6
"""Of the distance between 1 and the next number: 0.6 to 1.2 units in the last place of any, which round to one."""

_KINDS = (torch.float16, torch.bfloat16, torch.float32)


def nextafter(input: torch.Tensor, other: torch.Tensor) -> Any:
    """The next number after ``input`` towards ``other``."""
    if input.dtype not in _KINDS or other.dtype != input.dtype:
        return NotImplemented
    kind = torch.finfo(input.dtype)
    least = kind.smallest_normal * kind.eps
    most = 2.0 ** math.ceil(math.log2(kind.max))
    x = input.to(torch.float64).clamp(-most, most)
    up = other > input
    away = (x.abs() * (_STEP * kind.eps)).clamp(min=least)
    there = torch.where(
        x.abs() < kind.smallest_normal, x + torch.where(up, least, -least), torch.where(up, x + away, x - away)
    )
    there = torch.where(input == other, other.to(torch.float64), there)
    return torch.where(input.isnan() | other.isnan(), torch.nan, there).to(input.dtype)


DECOMPOSITIONS = {torch.ops.aten.nextafter.default: nextafter}
