"""Systems of equations by elimination, step by step: for matrices small enough that the steps can be written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_RESULTS: Any = torch.return_types
_MOST = 32  # rows: each takes some twenty nodes


def _fits(matrix: torch.Tensor) -> bool:
    rows: Any = matrix.shape[-1]
    return isinstance(rows, int) and 0 < rows <= _MOST and not matrix.is_complex()


def _eliminated(matrix: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gauss-Jordan with row pivots: the solution, the pivots [..., n], and the sign of the permutation."""
    place = torch.arange(matrix.shape[-1])
    pivots, sign = [], torch.ones_like(matrix[..., 0, 0])
    for step in range(matrix.shape[-1]):
        best = matrix[..., step:, step].abs().argmax(-1, keepdim=True) + step
        order = torch.where(place == best, step, torch.where(place == step, best, place)).unsqueeze(-1)
        matrix, right = matrix.gather(-2, order.expand_as(matrix)), right.gather(-2, order.expand_as(right))
        sign = torch.where(best.squeeze(-1) == step, sign, -sign)
        pivot = matrix[..., step : step + 1, step : step + 1]
        pivots.append(pivot[..., 0, 0])
        here = (place == step).unsqueeze(-1)
        row, solved = matrix[..., step : step + 1, :] / pivot, right[..., step : step + 1, :] / pivot
        factor = matrix[..., :, step : step + 1]
        matrix = torch.where(here, row, matrix - factor * row)
        right = torch.where(here, solved, right - factor * solved)
    return right, torch.stack(pivots, -1), sign


def _identity(matrix: torch.Tensor) -> torch.Tensor:
    return torch.eye(matrix.shape[-1], dtype=matrix.dtype).expand_as(matrix)


def _inverse(original: Callable[..., Any]) -> Callable[..., Any]:
    def inverse(A: torch.Tensor, **how: Any) -> Any:
        return original(A, **how) if how or not _fits(A) else _eliminated(A, _identity(A))[0]

    return inverse


def solve(A: torch.Tensor, B: torch.Tensor, *, left: bool = True, **how: Any) -> torch.Tensor:
    """X with A @ X = B, for matrices or vectors B."""
    if how or not left or not _fits(A):
        return torch.linalg.solve(A, B, left=left, **how)
    vectors = B.dim() == 1 or (B.dim() == A.dim() - 1 and B.shape == A.shape[:-1])
    right = B.unsqueeze(-1) if vectors else B
    batch = torch.broadcast_shapes(A.shape[:-2], right.shape[:-2])
    right = right.expand(*batch, *right.shape[-2:])
    solution = _eliminated(A.expand(*batch, *A.shape[-2:]), right)[0]
    return solution.squeeze(-1) if vectors else solution


def slogdet(A: torch.Tensor) -> Any:
    """Sign and logarithm of the absolute determinant."""
    if not _fits(A):
        return torch.linalg.slogdet(A)
    _, pivots, sign = _eliminated(A, A[..., :1])
    return _RESULTS.linalg_slogdet((sign * pivots.sign().prod(-1), pivots.abs().log().sum(-1)))


def cholesky(input: torch.Tensor, *, upper: bool = False) -> torch.Tensor:
    """L with L @ L' = input, column by column."""
    if not _fits(input):
        return torch.linalg.cholesky(input, upper=upper)
    columns: list[torch.Tensor] = []
    for step in range(input.shape[-1]):
        rest = input[..., step:, step]
        for column in columns:
            rest = rest - column[..., step:] * column[..., step : step + 1]
        column = rest / rest[..., :1].sqrt()
        columns.append(torch.nn.functional.pad(column, (step, 0)))
    return torch.stack(columns, -2 if upper else -1)


def solve_triangular(
    A: torch.Tensor,
    B: torch.Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> torch.Tensor:
    """X with A @ X = B, where only one triangle of A counts."""
    if not left or not _fits(A):
        return torch.linalg.solve_triangular(A, B, upper=upper, left=left, unitriangular=unitriangular)
    rows: dict[int, torch.Tensor] = {}
    count = A.shape[-1]
    for step in reversed(range(count)) if upper else range(count):
        row = B[..., step, :]
        for other, known in rows.items():
            row = row - A[..., step, other].unsqueeze(-1) * known
        rows[step] = row if unitriangular else row / A[..., step, step].unsqueeze(-1)
    return torch.stack([rows[step] for step in range(count)], -2)


REPLACEMENTS: dict[Any, Any] = {
    torch.linalg.inv: _inverse(torch.linalg.inv),
    torch.inverse: _inverse(torch.inverse),
    torch.Tensor.inverse: _inverse(torch.inverse),
    torch.linalg.solve: solve,
    torch.linalg.slogdet: slogdet,
    torch.slogdet: slogdet,
    torch.Tensor.slogdet: slogdet,
    torch.linalg.cholesky: cholesky,
    torch.linalg.solve_triangular: solve_triangular,
}
