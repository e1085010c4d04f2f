"""The next number of a floating-point format, from the next wider one."""

from __future__ import annotations

from typing import Any

import torch

_STEP = 0.6 * 2**-23
"""Of a float32, relative to it: 0.6 to 1.2 units in its last place, which round to one."""


def nextafter(input: torch.Tensor, other: torch.Tensor) -> Any:
    """The next float32 after ``input`` towards ``other``."""
    if input.dtype != torch.float32 or other.dtype != torch.float32:
        return NotImplemented
    x = input.to(torch.float64).clamp(-(2.0**128), 2.0**128)
    up = other > input
    least = torch.finfo(torch.float32).smallest_normal
    away = (x.abs() * _STEP).clamp(min=2.0**-149)
    there = torch.where(
        x.abs() < least, x + torch.where(up, 2.0**-149, -(2.0**-149)), torch.where(up, x + away, x - away)
    )
    there = torch.where(input == other, other.to(torch.float64), there)
    return torch.where(input.isnan() | other.isnan(), torch.nan, there).to(torch.float32)


DECOMPOSITIONS = {torch.ops.aten.nextafter.default: nextafter}
