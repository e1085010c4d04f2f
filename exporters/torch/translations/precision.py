"""The precision in which decompositions compute, and sums of Chebyshev polynomials."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

_HALVES = (torch.float16, torch.bfloat16)
_NEGLIGIBLE = 1e-10
"""A term too small to matter in float32."""


def floating(function: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """For floats of at least single precision: halves are widened and rounded back, anything else is left to torch."""

    @functools.wraps(function)
    def decomposition(input: torch.Tensor, *args: Any, **how: Any) -> Any:
        if not input.is_floating_point():
            return NotImplemented
        if input.dtype in _HALVES:
            return function(*_converted((input, *args), torch.float32), **how).to(_result_type(input, args))
        return function(input, *args, **how)

    return decomposition


def in_double(function: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """Computes in float64 and rounds to the dtype that torch returns; integers become floats as in torch."""

    @functools.wraps(function)
    def decomposition(input: torch.Tensor, *args: Any, **how: Any) -> torch.Tensor:
        kind = _result_type(input, args)
        return function(*_converted((input, *args), torch.float64), **how).to(kind)

    return decomposition


def clenshaw(coefficients: Sequence[float], x: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """A sum of Chebyshev polynomials at ``x`` in [-1, 1], with as many terms as a result of ``kind`` can resolve."""
    double = kind == torch.float64
    kept = [number for number in coefficients if double or abs(number) > _NEGLIGIBLE]
    after, twice = torch.zeros_like(x), torch.zeros_like(x)
    for number in reversed(kept[1:]):
        after, twice = 2 * x * after - twice + number, after
    return x * after - twice + kept[0]


def _converted(operands: Sequence[Any], kind: torch.dtype) -> list[Any]:
    return [each.to(kind) if isinstance(each, torch.Tensor) else each for each in operands]


def _result_type(input: torch.Tensor, others: Sequence[Any]) -> torch.dtype:
    kind = input.dtype
    for other in others:
        if isinstance(other, torch.Tensor):
            kind = torch.promote_types(kind, other.dtype)
    return kind if kind.is_floating_point else torch.get_default_dtype()
