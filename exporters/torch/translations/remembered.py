"""Tensors that hold a size: what is read back from them is that size, not a number that nothing is known about."""

from __future__ import annotations

import functools
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


def as_tensor(data: Any, **how: Any) -> torch.Tensor:
    """Numbers as a tensor: torch (2.13) would take sizes among them for constants."""
    return _put_together(data, **how) if holds_sizes(data) else torch.as_tensor(data, **how)


def new_tensor(self: torch.Tensor, data: Any, *, dtype: torch.dtype | None = None, **how: Any) -> torch.Tensor:
    """The same, of the kind of another tensor."""
    if not holds_sizes(data):
        return self.new_tensor(data, dtype=dtype, **how)
    return _put_together(data, dtype or self.dtype)


def _put_together(data: Any, dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
    if isinstance(data, list | tuple):
        parts = [_put_together(each) for each in data]
        kind = functools.reduce(torch.promote_types, (part.dtype for part in parts))
        result = torch.stack([part.to(kind) for part in parts])
    elif isinstance(data, torch.Tensor):
        result = data
    else:
        result = scalar_tensor(data, dtype=_kind(data))
    return result if dtype is None else result.to(dtype)


def _kind(number: Any) -> torch.dtype:
    """What ``torch.tensor`` makes of a number."""
    if isinstance(number, bool):
        return torch.bool
    return torch.int64 if isinstance(number, int | torch.SymInt) else torch.get_default_dtype()


def holds_sizes(data: Any) -> bool:
    """Whether a number that varies is in a list, or in lists of lists."""
    if isinstance(data, list | tuple):
        return any(map(holds_sizes, data))
    return isinstance(data, torch.SymInt | torch.SymFloat)


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
    torch.as_tensor: as_tensor,
    torch.Tensor.new_tensor: new_tensor,
    torch.scalar_tensor: scalar_tensor,
}
