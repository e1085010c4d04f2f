"""Reductions to one element, and of tensors without axes, which torch.onnx (2.13) has for tensors with axes only."""

from __future__ import annotations

from typing import Any

import torch

aten = torch.ops.aten


def amax(input: torch.Tensor, dim: Any = (), keepdim: bool = False) -> Any:
    """The largest along some axes; along all without any."""
    if input.dim() == 0:
        return input.clone()
    return NotImplemented if dim else torch.amax(input, list(range(input.dim())), keepdim)


def amin(input: torch.Tensor, dim: Any = (), keepdim: bool = False) -> Any:
    """The smallest along some axes; along all without any."""
    if input.dim() == 0:
        return input.clone()
    return NotImplemented if dim else torch.amin(input, list(range(input.dim())), keepdim)


def prod(input: torch.Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Any:
    """The product along an axis."""
    return NotImplemented if input.dim() else torch.prod(input, dtype=dtype)


def topk(input: torch.Tensor, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The largest elements; one of a tensor without axes."""
    if input.dim():
        return NotImplemented
    return input.clone(), torch.zeros((), dtype=torch.int64)


DECOMPOSITIONS = {
    aten.amax.default: amax,
    aten.amin.default: amin,
    aten.prod.dim_int: prod,
    aten.topk.default: topk,
}
