"""Arithmetic of uint16, uint32 and uint64, which torch stores and does not compute with.

The same bits as a signed type wrap alike, and are moved alike; with the highest bit flipped they are in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from entrepot.runtime.providers.torch.dtypes import RAW, WIDE

_WIDER = {torch.uint16: torch.int32, torch.uint32: torch.int64}


def signed(x: Tensor) -> Tensor:
    """The same bits."""
    return x.view(WIDE[x.dtype])


def ordered(x: Tensor) -> Tensor:
    """Signed numbers in the order of the unsigned ones; of other types, the array itself."""
    if x.dtype not in WIDE:
        return x.to(torch.uint8) if x.dtype is torch.bool else x
    bits = signed(x)
    return bits ^ torch.iinfo(bits.dtype).min


def from_ordered(x: Tensor, dtype: torch.dtype) -> Tensor:
    """What ``ordered`` made, as it was."""
    if dtype not in WIDE:
        return x.to(dtype)
    return (x ^ torch.iinfo(x.dtype).min).view(dtype)


def raw(x: Tensor) -> Tensor:
    """The same bits, in a type that torch can move."""
    kind = RAW.get(x.dtype)
    return x if kind is None else x.view(kind)


def moved(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that moves elements of its first argument, for any element type."""

    @wraps(function)
    def move(x: Tensor, *arguments: Any, **keywords: Any) -> Any:
        if x.dtype not in RAW:
            return function(x, *arguments, **keywords)
        return function(raw(x), *arguments, **keywords).view(x.dtype)

    return move


def chosen(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """``x`` where the condition holds, else ``y``, of any element type."""
    return torch.where(condition, raw(x), raw(y)).view(x.dtype) if x.dtype in RAW else torch.where(condition, x, y)


def wrapping(function: Callable[..., Any], *tensors: Tensor) -> Tensor:
    """Apply a function whose results wrap, to tensors of one type."""
    dtype = tensors[0].dtype
    if dtype not in WIDE:
        return function(*tensors)
    return function(*map(signed, tensors)).view(dtype)


def divided(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Quotient and remainder of unsigned numbers."""
    wider = _WIDER.get(x.dtype)
    if wider is not None:
        a, b = x.to(wider), y.to(wider)
        quotient = torch.div(a, b, rounding_mode="trunc")
        return quotient.to(x.dtype), (a - quotient * b).to(x.dtype)
    a, b = signed(x), signed(y)
    half = torch.div((a >> 1) & torch.iinfo(a.dtype).max, b.clamp(min=1), rounding_mode="trunc") << 1
    left = a - half * b
    once_more = (left ^ _TOP) >= (b ^ _TOP)
    large = b < 0  # a divisor of 2 to the 63rd or more fits once or not at all
    once = (a ^ _TOP) >= (b ^ _TOP)
    quotient = torch.where(large, once.to(a.dtype), half + once_more.to(a.dtype))
    return quotient.view(x.dtype), (a - quotient * b).view(x.dtype)


_TOP = torch.iinfo(torch.int64).min
