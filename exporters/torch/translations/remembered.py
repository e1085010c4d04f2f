"""Tensors that hold a size: what is read back from them is that size, not a number that nothing is known about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from entrepot.exporters.torch.upstream import is_natural, remember_number


def div(input: Any, other: Any, *, rounding_mode: str | None = None, **how: Any) -> torch.Tensor:
    """A quotient; of sizes, in whole numbers, it is known: none is negative, so both ways of rounding agree."""
    result = torch.div(input, other, rounding_mode=rounding_mode, **how)
    if rounding_mode is None or how:
        return result
    return _remembering(result, lambda: input // other, input, other)


def floor_divide(input: Any, other: Any, **how: Any) -> torch.Tensor:
    """A quotient, rounded down."""
    result = torch.floor_divide(input, other, **how)
    return result if how else _remembering(result, lambda: input // other, input, other)


def scalar(data: Any, **how: Any) -> torch.Tensor:
    """A tensor of a number."""
    result = torch.tensor(data, **how)
    return _remembering(result, lambda: data, data)


def scalar_tensor(s: Any, **how: Any) -> torch.Tensor:
    """A tensor of a number."""
    return _remembering(torch.scalar_tensor(s, **how), lambda: s, s)


def _remembering(result: torch.Tensor, number: Callable[[], Any], *operands: Any) -> torch.Tensor:
    """The result, which knows its number where that is computed from sizes."""
    sizes = [operand for operand in operands if isinstance(operand, torch.SymInt)]
    rest = [operand for operand in operands if not isinstance(operand, torch.SymInt)]
    whole = all(isinstance(operand, int) and operand > 0 for operand in rest)
    if sizes and whole and result.dtype == torch.int64 and all(map(is_natural, sizes)):
        remember_number(result, number())
    return result


REPLACEMENTS: dict[Any, Any] = {
    torch.div: div,
    torch.divide: div,
    torch.floor_divide: floor_divide,
    torch.tensor: scalar,
    torch.scalar_tensor: scalar_tensor,
}
