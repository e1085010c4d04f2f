"""Arithmetic, elementwise with broadcasting. Integers wrap; their division truncates."""

from __future__ import annotations

from functools import reduce

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.precision import is_floating, narrow, widen
from entrepot.runtime.kernels.table import shared


@shared("Add", 14)
def add(xp: Backend, A: Array, B: Array) -> Array:
    """A + B."""
    return A + B


@shared("Sub", 14)
def sub(xp: Backend, A: Array, B: Array) -> Array:
    """A - B."""
    return A - B


@shared("Mul", 14)
def mul(xp: Backend, A: Array, B: Array) -> Array:
    """A * B."""
    return A * B


@shared("Div", 14)
def div(xp: Backend, A: Array, B: Array) -> Array:
    """A / B; integers truncate toward zero."""
    if is_floating(xp.dtype(A)):
        return A / B
    return (A - xp.fmod(A, B)) // B  # exact: what is left is a multiple of B


@shared("Mod", 28)
def mod(xp: Backend, A: Array, B: Array, *, fmod: int = 0) -> Array:
    """The remainder, with the sign of the divisor, or with that of the dividend where ``fmod`` is set."""
    return xp.fmod(A, B) if fmod else A % B


@shared("Pow", 15)
def power(xp: Backend, X: Array, Y: Array) -> Array:
    """X to the power of Y in X's dtype; an integer power of fractions or below zero is cut off to an integer."""
    dtype = xp.dtype(X)
    if is_floating(dtype) or np.issubdtype(xp.dtype(Y), np.unsignedinteger):
        return xp.power(X, Y)
    wide = np.dtype(np.float64)
    exact = xp.astype(xp.power(xp.astype(X, wide), xp.astype(Y, wide)), dtype)
    if is_floating(xp.dtype(Y)):
        return exact
    zero = xp.scalar(0, like=Y)
    return xp.where(Y < zero, exact, xp.power(X, xp.maximum(Y, zero)))  # float64 holds no 64-bit integers


@shared("Neg", 13)
def neg(xp: Backend, X: Array) -> Array:
    """-X."""
    return -X


@shared("Abs", 13)
def absolute(xp: Backend, X: Array) -> Array:
    """The absolute value."""
    return xp.abs(X)


@shared("Sign", 13)
def sign(xp: Backend, input: Array) -> Array:
    """-1, 0 or 1."""
    return xp.sign(input)


@shared("Reciprocal", 13)
def reciprocal(xp: Backend, X: Array) -> Array:
    """1 / X."""
    return xp.scalar(1, like=X) / X


@shared("Sqrt", 13)
def sqrt(xp: Backend, X: Array) -> Array:
    """The square root; NaN below zero."""
    return xp.sqrt(X)


@shared("Floor", 13)
def floor(xp: Backend, X: Array) -> Array:
    """The largest integer that is not above X."""
    return xp.floor(X)


@shared("Ceil", 13)
def ceil(xp: Backend, X: Array) -> Array:
    """The smallest integer that is not below X."""
    return xp.ceil(X)


@shared("Round", 22)
def round_half_to_even(xp: Backend, X: Array) -> Array:
    """The nearest integer; halves go to the even one."""
    return xp.rint(X)


@shared("Sum", 13)
def variadic_sum(xp: Backend, *data_0: Array) -> Array:
    """The sum of all inputs."""
    return narrow(xp, _total(xp, data_0), xp.dtype(data_0[0]))


@shared("Mean", 13)
def variadic_mean(xp: Backend, *data_0: Array) -> Array:
    """The mean of all inputs."""
    total = _total(xp, data_0)
    return narrow(xp, total / xp.scalar(len(data_0), like=total), xp.dtype(data_0[0]))


def _total(xp: Backend, arrays: tuple[Array, ...]) -> Array:
    return reduce(lambda x, y: x + y, [widen(xp, array) for array in arrays])


@shared("Max", 13)
def variadic_max(xp: Backend, *data_0: Array) -> Array:
    """The largest of all inputs; NaN wins."""
    return reduce(xp.maximum, data_0)


@shared("Min", 13)
def variadic_min(xp: Backend, *data_0: Array) -> Array:
    """The smallest of all inputs; NaN wins."""
    return reduce(xp.minimum, data_0)


@shared("Clip", 13)
def clip(xp: Backend, input: Array, min: Array | None = None, max: Array | None = None) -> Array:
    """Raise to ``min``, then lower to ``max``: where they cross, ``max`` holds."""
    x = input if min is None else xp.maximum(input, min)
    return x if max is None else xp.minimum(x, max)


@shared("BitShift", 28)
def bit_shift(xp: Backend, X: Array, Y: Array, *, direction: str) -> Array:
    """Shift left or right; past the width, or by a negative amount, only the sign's extension is left."""
    if direction not in ("LEFT", "RIGHT"):
        raise InputError(f"BitShift takes direction LEFT or RIGHT, not {direction!r}")
    dtype = xp.dtype(X)
    zero, last = xp.scalar(0, like=Y), xp.scalar(8 * dtype.itemsize - 1, like=Y)
    outside = (Y < zero) | (Y > last)
    amount = xp.where(outside, last, Y)
    if direction == "RIGHT" and np.issubdtype(dtype, np.signedinteger):
        return X >> amount  # by all bits but one: the sign alone
    return xp.where(outside, zero, X >> amount if direction == "RIGHT" else X << amount)


@shared("BitwiseAnd", 18)
def bitwise_and(xp: Backend, A: Array, B: Array) -> Array:
    """A & B."""
    return A & B


@shared("BitwiseOr", 18)
def bitwise_or(xp: Backend, A: Array, B: Array) -> Array:
    """A | B."""
    return A | B


@shared("BitwiseXor", 18)
def bitwise_xor(xp: Backend, A: Array, B: Array) -> Array:
    """A ^ B."""
    return A ^ B


@shared("BitwiseNot", 18)
def bitwise_not(xp: Backend, X: Array) -> Array:
    """~X."""
    return ~X
