"""Triangles and diagonals whose size varies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from entrepot.exporters.torch.upstream import statically_known_true


def triu_indices(row: Any, col: Any, offset: int = 0, **how: Any) -> torch.Tensor:
    """Where an upper triangle is, row by row: [2, count]."""
    if isinstance(row, int) and isinstance(col, int):
        return torch.triu_indices(row, col, offset, **how)
    return _places(torch.arange(col) >= torch.arange(row).unsqueeze(1) + offset, row, col, offset, how)


def tril_indices(row: Any, col: Any, offset: int = 0, **how: Any) -> torch.Tensor:
    """Where a lower triangle is, row by row: [2, count]."""
    if isinstance(row, int) and isinstance(col, int):
        return torch.tril_indices(row, col, offset, **how)
    return _places(torch.arange(col) <= torch.arange(row).unsqueeze(1) + offset, row, col, -offset, how)


def _places(mask: torch.Tensor, row: Any, col: Any, without: int, how: dict[str, Any]) -> torch.Tensor:
    """Of a square with its diagonal, or without, by a sort that keeps the order: how many there are is known before."""
    if without not in (0, 1) or not statically_known_true(row == col):
        return mask.nonzero().T.to(how.get("dtype") or torch.int64)
    count = row * (row + 1 - 2 * without) // 2
    places = torch.sort(mask.flatten().to(torch.int32), stable=True, descending=True).indices[:count]
    return torch.stack([places // row, places % row]).to(how.get("dtype") or torch.int64)


def fill_diagonal_(input: torch.Tensor, fill_value: Any, wrap: bool = False) -> torch.Tensor:
    """A diagonal of one value, which torch (2.13) writes for the sizes of the sample alone."""
    if all(isinstance(size, int) for size in input.shape) or input.dim() != 2:
        return input.fill_diagonal_(fill_value, wrap)
    rows, columns = (torch.arange(size, device=input.device) for size in input.shape)
    rows = rows.unsqueeze(1)
    width: Any = input.shape[1]
    on_diagonal = (rows * width + columns) % (width + 1) == 0 if wrap else rows == columns
    return input.masked_fill_(on_diagonal, fill_value)


REPLACEMENTS: dict[Any, Callable[..., Any]] = {
    torch.triu_indices: triu_indices,
    torch.tril_indices: tril_indices,
    torch.Tensor.fill_diagonal_: fill_diagonal_,
}
