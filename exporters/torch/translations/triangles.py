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


def diagonal(input: torch.Tensor, offset: Any = 0, dim1: int = 0, dim2: int = 1) -> torch.Tensor:
    """A diagonal that a size tells, which torch (2.13) takes from where it is in the sample."""
    if isinstance(offset, int):
        return torch.diagonal(input, offset, dim1, dim2)
    below, beside = _below_and_beside(offset)
    rows, columns = input.shape[dim1] - below, input.shape[dim2] - beside
    count = _at_least_nothing(_smaller(rows, columns))
    place = torch.arange(count, device=input.device)
    return input.movedim((dim1, dim2), (-2, -1))[..., place + below, place + beside]


def diag(input: torch.Tensor, diagonal: Any = 0) -> torch.Tensor:
    """The same of a matrix, or a matrix that has such a diagonal."""
    if isinstance(diagonal, int):
        return torch.diag(input, diagonal)
    if input.dim() == 2:
        return _diagonal(input, diagonal)
    below, beside = _below_and_beside(diagonal)
    place, size = torch.arange(input.shape[0], device=input.device), input.shape[0] + below + beside
    return input.new_zeros(size, size).index_put((place + below, place + beside), input)


_diagonal = diagonal


def _below_and_beside(offset: Any) -> tuple[Any, Any]:
    """How far a diagonal is below the main one, and how far beside it."""
    if statically_known_true(offset >= 0):
        return 0, offset
    if statically_known_true(offset <= 0):
        return -offset, 0
    return torch.sym_max(-offset, 0), torch.sym_max(offset, 0)


def _smaller(one: Any, other: Any) -> Any:
    if statically_known_true(one <= other):
        return one
    return other if statically_known_true(other <= one) else torch.sym_min(one, other)


def _at_least_nothing(size: Any) -> Any:
    return size if statically_known_true(size >= 0) else torch.sym_max(size, 0)


REPLACEMENTS: dict[Any, Callable[..., Any]] = {
    torch.triu_indices: triu_indices,
    torch.tril_indices: tril_indices,
    torch.Tensor.fill_diagonal_: fill_diagonal_,
    **dict.fromkeys((torch.diagonal, torch.Tensor.diagonal), diagonal),
    **dict.fromkeys((torch.diag, torch.Tensor.diag), diag),
}
