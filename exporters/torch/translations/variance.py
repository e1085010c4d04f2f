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
    squares = centered * centered
    count: Any = math.prod(x.shape[axis] for axis in axes)
    if correction == 0 and not isinstance(count, int):
        return squares.mean(axes, keepdim)
    missing = int(correction) if float(correction).is_integer() else correction
    return squares.sum(axes, keepdim) / torch.sym_max(count - missing, 0)  # of nothing NaN, as nothing by 0 is


DECOMPOSITIONS = {
    aten.var.correction: _decomposition(root=False, with_mean=False),
    aten.std.correction: _decomposition(root=True, with_mean=False),
    aten.var_mean.correction: _decomposition(root=False, with_mean=True),
    aten.std_mean.correction: _decomposition(root=True, with_mean=True),
}
