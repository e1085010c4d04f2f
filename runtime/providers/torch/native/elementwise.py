"""Arithmetic, comparison and logic of torch: its own functions, and what uint16 to uint64 take beside them."""

from __future__ import annotations

from functools import reduce

import torch
from torch import Tensor

from entrepot.runtime.kernels import arithmetic
from entrepot.runtime.providers.torch.backend import TORCH
from entrepot.runtime.providers.torch.dtypes import WIDE
from entrepot.runtime.providers.torch.table import native
from entrepot.runtime.providers.torch.unsigned import chosen, divided, ordered, wrapping

native("Sqrt", 13)(torch.sqrt)
native("Exp", 13)(torch.exp)
native("Log", 13)(torch.log)
native("Erf", 13)(torch.erf)
native("Sin", 22)(torch.sin)
native("Cos", 22)(torch.cos)
native("Tan", 22)(torch.tan)
native("Asin", 22)(torch.asin)
native("Acos", 22)(torch.acos)
native("Atan", 22)(torch.atan)
native("Sinh", 22)(torch.sinh)
native("Cosh", 22)(torch.cosh)
native("Tanh", 13)(torch.tanh)
native("Asinh", 22)(torch.asinh)
native("Acosh", 22)(torch.acosh)
native("Atanh", 22)(torch.atanh)
native("Floor", 13)(torch.floor)
native("Ceil", 13)(torch.ceil)
native("Round", 22)(torch.round)
native("Reciprocal", 13)(torch.reciprocal)
native("IsNaN", 20)(torch.isnan)
native("Neg", 13)(torch.neg)

native("And", 7)(torch.logical_and)
native("Or", 7)(torch.logical_or)
native("Xor", 7)(torch.logical_xor)
native("Not", 1)(torch.logical_not)
native("BitwiseAnd", 18)(torch.bitwise_and)
native("BitwiseOr", 18)(torch.bitwise_or)
native("BitwiseXor", 18)(torch.bitwise_xor)
native("Equal", 19)(torch.eq)
native("Where", 16)(torch.where)


@native("Abs", 13)
def absolute(X: Tensor) -> Tensor:
    """The absolute value."""
    return X if X.dtype in WIDE else torch.abs(X)


@native("BitwiseNot", 18)
def bitwise_not(X: Tensor) -> Tensor:
    """~X."""
    return wrapping(torch.bitwise_not, X)


@native("Add", 14)
def add(A: Tensor, B: Tensor) -> Tensor:
    """A + B."""
    return wrapping(torch.add, A, B)


@native("Sub", 14)
def sub(A: Tensor, B: Tensor) -> Tensor:
    """A - B."""
    return wrapping(torch.sub, A, B)


@native("Mul", 14)
def mul(A: Tensor, B: Tensor) -> Tensor:
    """A * B."""
    return wrapping(torch.mul, A, B)


@native("Div", 14)
def div(A: Tensor, B: Tensor) -> Tensor:
    """A / B; integers truncate toward zero, and by zero give zero."""
    if A.is_floating_point():
        return torch.div(A, B)
    return _divided(A, B)


def _divided(A: Tensor, B: Tensor) -> Tensor:
    """The smallest integer by -1 wraps, which as a machine's division would end the process."""
    if A.dtype in WIDE:
        return chosen(B == 0, B, divided(A, _one_for_zero(B))[0])
    divisor = torch.where(B == 0, torch.ones_like(B), B)
    if A.dtype.is_signed:
        quotient = torch.div(A, torch.where(B == -1, torch.ones_like(B), divisor), rounding_mode="trunc")
        quotient = torch.where(B == -1, -quotient, quotient)
    else:
        quotient = torch.div(A, divisor, rounding_mode="trunc")
    return torch.where(B == 0, torch.zeros_like(B), quotient)


def _one_for_zero(x: Tensor) -> Tensor:
    return chosen(x == 0, torch.ones_like(x), x)


@native("Mod", 28)
def mod(A: Tensor, B: Tensor, *, fmod: int = 0) -> Tensor:
    """The remainder, with the sign of the divisor, or with that of the dividend where ``fmod`` is set."""
    if A.is_floating_point():
        return torch.fmod(A, B) if fmod else torch.remainder(A, B)
    divisor = _one_for_zero(B)
    if A.dtype in WIDE:
        return divided(A, divisor)[1]
    return torch.fmod(A, divisor) if fmod else torch.remainder(A, divisor)


@native("Pow", 15)
def power(X: Tensor, Y: Tensor) -> Tensor:
    """X to the power of Y in X's dtype."""
    if X.is_floating_point():
        return torch.pow(X, Y if Y.dtype == X.dtype else Y.to(X.dtype))
    return arithmetic.power(TORCH, X, Y)


@native("Greater", 13)
def greater(A: Tensor, B: Tensor) -> Tensor:
    """A > B."""
    return torch.gt(A, B) if A.dtype not in WIDE else torch.gt(ordered(A), ordered(B))


@native("GreaterOrEqual", 16)
def greater_or_equal(A: Tensor, B: Tensor) -> Tensor:
    """A >= B."""
    return torch.ge(A, B) if A.dtype not in WIDE else torch.ge(ordered(A), ordered(B))


@native("Less", 13)
def less(A: Tensor, B: Tensor) -> Tensor:
    """A < B."""
    return torch.lt(A, B) if A.dtype not in WIDE else torch.lt(ordered(A), ordered(B))


@native("LessOrEqual", 16)
def less_or_equal(A: Tensor, B: Tensor) -> Tensor:
    """A <= B."""
    return torch.le(A, B) if A.dtype not in WIDE else torch.le(ordered(A), ordered(B))


@native("Max", 13)
def maximum(*data_0: Tensor) -> Tensor:
    """The largest of all inputs; NaN wins."""
    return reduce(TORCH.maximum, data_0)


@native("Min", 13)
def minimum(*data_0: Tensor) -> Tensor:
    """The smallest of all inputs; NaN wins."""
    return reduce(TORCH.minimum, data_0)


@native("Clip", 13)
def clip(input: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """Raise to ``min``, then lower to ``max``: where they cross, ``max`` holds; NaN stays."""
    if input.dtype in WIDE or (min is None and max is None):
        return arithmetic.clip(TORCH, input, min, max)
    return torch.clamp(input, min, max)


@native("BitShift", 28)
def bit_shift(X: Tensor, Y: Tensor, *, direction: str) -> Tensor:
    """Shift left or right; past the width, or by a negative amount, only the sign's extension is left."""
    if X.dtype not in WIDE:
        return arithmetic.bit_shift(TORCH, X, Y, direction=direction)
    wide, amount = X.view(WIDE[X.dtype]), Y.view(WIDE[Y.dtype])
    bits = 8 * X.element_size()
    if direction == "LEFT":
        shifted = wide << amount.clamp(0, bits - 1)
    else:  # the first step by hand, so that no copies of the sign come in
        once = (wide >> 1) & torch.iinfo(wide.dtype).max
        shifted = torch.where(amount == 0, wide, once >> (amount - 1).clamp(0, bits - 1))
    outside = (amount < 0) | (amount >= bits)
    return torch.where(outside, torch.zeros_like(shifted), shifted).view(X.dtype)
