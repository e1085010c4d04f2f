"""As many rows as the data say, which may be none, and one more: of none, onnxruntime (1.31) makes errors, or aborts.

Of none, captures (torch 2.13) would also have to know before they ask how a system is to be solved.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from entrepot.exporters.torch.upstream import is_uncounted


def with_one_more(rows: torch.Tensor, axis: int) -> torch.Tensor:
    """Rows along an axis, and one of zeros behind them."""
    shape = [1 if at == axis else size for at, size in enumerate(rows.shape)]
    return torch.cat([rows, rows.new_zeros(shape)], axis)


def without_it(made: torch.Tensor, axis: int) -> torch.Tensor:
    """What was made of the rows, without what was made of the one behind them."""
    return made.narrow(axis, 0, made.shape[axis] - 1)


def _of_rows(function: Callable[..., Any], least: int) -> Callable[..., Any]:
    """What a function makes of each of the rows that come first among its arguments, if they have so many axes."""

    @functools.wraps(function)
    def made(rows: torch.Tensor, *how: Any, **named: Any) -> Any:
        if rows.dim() < least or not is_uncounted(rows.shape[0]):
            return function(rows, *how, **named)
        found = function(with_one_more(rows, 0), *how, **named)
        if isinstance(found, torch.Tensor):
            return without_it(found, 0)
        return type(found)([without_it(each, 0) for each in found])

    return made


def solve_triangular(A: torch.Tensor, B: torch.Tensor, **how: Any) -> torch.Tensor:
    """X with A @ X = B, or X @ A = B, where only one triangle of A counts."""
    if min(A.dim(), B.dim()) < 3 or not (is_uncounted(A.shape[0]) and is_uncounted(B.shape[0])):
        return torch.linalg.solve_triangular(A, B, **how)
    return without_it(torch.linalg.solve_triangular(with_one_more(A, 0), with_one_more(B, 0), **how), 0)


_OF_MATRICES = torch.linalg.eigh, torch.linalg.eigvalsh, torch.linalg.svd, torch.linalg.svdvals

REPLACEMENTS = {
    F.group_norm: _of_rows(F.group_norm, 2),
    **{function: _of_rows(function, 3) for function in _OF_MATRICES},
    torch.linalg.solve_triangular: solve_triangular,
}
