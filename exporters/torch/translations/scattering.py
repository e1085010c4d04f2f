"""Means of values scattered to one place: torch.onnx (2.13) lacks them, or returns sums."""

from __future__ import annotations

from typing import Any

import torch


def scatter_reduce(
    input: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, reduce: str, *, include_self: bool = True
) -> torch.Tensor:
    """Reduce the elements of ``src`` that ``index`` sends to one place."""
    if reduce != "mean" or not input.is_floating_point():
        return torch.scatter_reduce(input, dim, index, src, reduce, include_self=include_self)
    counts = torch.zeros_like(input).scatter_add(dim, index, torch.ones_like(src))
    if include_self:
        return input.scatter_add(dim, index, src) / (counts + 1)
    sums = torch.zeros_like(input).scatter_add(dim, index, src)
    return torch.where(counts > 0, sums / counts.clamp(min=1), input)


def vander(x: torch.Tensor, N: int | None = None, increasing: bool = False) -> torch.Tensor:
    """Powers of each element."""
    count = x.shape[-1] if N is None else N
    powers = torch.arange(count)
    return x.unsqueeze(-1).pow(powers if increasing else count - 1 - powers)


REPLACEMENTS: dict[Any, Any] = {
    torch.scatter_reduce: scatter_reduce,
    torch.Tensor.scatter_reduce: scatter_reduce,
    torch.vander: vander,
}
