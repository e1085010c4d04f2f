"""Variances and standard deviations, whose squares torch sums in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten


def _decomposition(*, root: bool, with_mean: bool) -> Callable[..., Any]:
    def decomposition(
        input: torch.Tensor,
        dim: Sequence[int] | None = None,
        *,
        correction: float | None = None,
        keepdim: bool = False,
    ) -> Any:
        if not input.is_floating_point() or not input.dim():
            return NotImplemented
        axes = [axis % input.dim() for axis in dim or range(input.dim())]
        x = input.to(torch.float64)
        spread = _variance(x, axes, 1 if correction is None else correction, keepdim)
        spread = (spread.sqrt() if root else spread).to(input.dtype)
        return (spread, x.mean(axes, keepdim).to(input.dtype)) if with_mean else spread

    return decomposition


def _variance(x: torch.Tensor, axes: list[int], correction: float, keepdim: bool) -> torch.Tensor:
    centered = x - x.mean(axes, keepdim=True)
    value = (centered * centered).mean(axes, keepdim)  # of nothing NaN, which a sum is not
    if correction == 0:
        return value
    count: Any = math.prod(x.shape[axis] for axis in axes)
    if correction > 1:
        return value * count / torch.sym_max(count - correction, 0)
    number = torch.scalar_tensor(count, dtype=x.dtype)
    return value * number / (number - correction)


DECOMPOSITIONS = {
    aten.var.correction: _decomposition(root=False, with_mean=False),
    aten.std.correction: _decomposition(root=True, with_mean=False),
    aten.var_mean.correction: _decomposition(root=False, with_mean=True),
    aten.std_mean.correction: _decomposition(root=True, with_mean=True),
}
