"""A complex number or tensor as two real ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64, torch.complex32: torch.float16}
"""The dtype of the parts."""


@dataclass(frozen=True)
class Pair:
    """Real and imaginary part.

    Attributes:
        re: The one.
        im: The other.
        exact: Both along a last axis in float64, where a transform has made them of that: another goes on from there.
    """

    re: Any
    im: Any
    exact: Any = None

    @property
    def tensors(self) -> tuple[Any, ...]:
        """All that it is made of again."""
        return (self.re, self.im) if self.exact is None else (self.re, self.im, self.exact)

    def __add__(self, other: Any) -> Pair:
        two = pair_of(other)
        return Pair(self.re + two.re, self.im + two.im)

    def __sub__(self, other: Any) -> Pair:
        two = pair_of(other)
        return Pair(self.re - two.re, self.im - two.im)

    def __mul__(self, other: Any) -> Pair:
        return bilinear(torch.mul)(self, other)

    def __neg__(self) -> Pair:
        return Pair(-self.re, -self.im)


def is_complex(value: Any) -> bool:
    """Whether an argument is, or should be, a pair."""
    return isinstance(value, Pair | complex) or (isinstance(value, torch.Tensor) and value.is_complex())


def pair_of(value: Any) -> Pair:
    """A number or tensor of any kind as a pair."""
    if isinstance(value, Pair):
        return value
    if isinstance(value, complex):
        return Pair(value.real, value.imag)
    return Pair(value, torch.zeros_like(value) if isinstance(value, torch.Tensor) else 0.0)


def bilinear(operator: Any) -> Callable[..., Any]:
    """For products of two operands of any kind."""

    def rule(one: Any, other: Any, *args: Any, **kwargs: Any) -> Pair:
        if not is_complex(one):
            other = pair_of(other)
            return Pair(operator(one, other.re, *args, **kwargs), operator(one, other.im, *args, **kwargs))
        one = pair_of(one)
        if not is_complex(other):
            return Pair(operator(one.re, other, *args, **kwargs), operator(one.im, other, *args, **kwargs))
        other = pair_of(other)
        straight = operator(one.re, other.re, *args, **kwargs) - operator(one.im, other.im, *args, **kwargs)
        return Pair(straight, operator(one.re, other.im, *args, **kwargs) + operator(one.im, other.re, *args, **kwargs))

    return rule


def real_kind(how: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments with the dtype of the parts instead of a complex one."""
    return how | ({"dtype": REAL[how["dtype"]]} if how.get("dtype") in REAL else {})
