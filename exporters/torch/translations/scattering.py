"""Values written to places of a tensor, where torch.onnx (2.13) lacks an operator, or has it wrong."""

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


def diagonal_scatter(
    input: torch.Tensor, src: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> torch.Tensor:
    """``input`` with ``src`` on a diagonal; torch's own decomposition (2.13) writes in place, which a graph cannot."""
    matrix = input.movedim((dim1, dim2), (-2, -1))
    rows, columns = matrix.shape[-2:]
    on_diagonal = torch.arange(columns) - torch.arange(rows).unsqueeze(-1) == offset
    along = -1 if offset >= 0 else -2  # what the elements of src are copied along: they are counted by the other axis
    missing = (rows if offset >= 0 else columns) - src.shape[-1]
    padded = torch.nn.functional.pad(src, (0, missing)).unsqueeze(along)
    return torch.where(on_diagonal, padded, matrix).movedim((-2, -1), (dim1, dim2))


DECOMPOSITIONS: dict[Any, Any] = {torch.ops.aten.diagonal_scatter.default: diagonal_scatter}
REPLACEMENTS: dict[Any, Any] = {
    torch.scatter_reduce: scatter_reduce,
    torch.Tensor.scatter_reduce: scatter_reduce,
    torch.vander: vander,
}
