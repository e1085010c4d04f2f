"""NumPy's own functions where they mean exactly what the schema says: no call of ours in between."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.runtime.providers.cpu import blocks
from entrepot.runtime.providers.cpu.blocks import clamp, select
from entrepot.runtime.providers.cpu.erf import erf
from entrepot.runtime.providers.cpu.table import native

Array = np.ndarray[Any, Any]

native("Add", 14)(np.add)
native("Sub", 14)(np.subtract)
native("Mul", 14)(np.multiply)
native("Neg", 13)(np.negative)
native("Abs", 13)(np.absolute)
native("Sign", 13)(np.sign)
native("Sqrt", 13)(np.sqrt)
native("Floor", 13)(np.floor)
native("Ceil", 13)(np.ceil)
native("Round", 22)(np.rint)

native("Exp", 13)(np.exp)
native("Log", 13)(np.log)
native("Tanh", 13)(np.tanh)
native("Sin", 22)(np.sin)
native("Cos", 22)(np.cos)
native("Tan", 22)(np.tan)
native("Asin", 22)(np.arcsin)
native("Acos", 22)(np.arccos)
native("Atan", 22)(np.arctan)
native("Sinh", 22)(np.sinh)
native("Cosh", 22)(np.cosh)
native("Asinh", 22)(np.arcsinh)
native("Acosh", 22)(np.arccosh)
native("Atanh", 22)(np.arctanh)

native("Equal", 19)(np.equal)
native("Greater", 13)(np.greater)
native("GreaterOrEqual", 16)(np.greater_equal)
native("Less", 13)(np.less)
native("LessOrEqual", 16)(np.less_equal)
native("And", 7)(np.logical_and)
native("Or", 7)(np.logical_or)
native("Xor", 7)(np.logical_xor)
native("Not", 1)(np.logical_not)
native("IsNaN", 20)(np.isnan)

native("BitwiseAnd", 18)(np.bitwise_and)
native("BitwiseOr", 18)(np.bitwise_or)
native("BitwiseXor", 18)(np.bitwise_xor)
native("BitwiseNot", 18)(np.bitwise_not)


@native("Erf", 13)
def erf_(input: Array) -> Array:
    """The error function, by a fit for float32."""
    return erf(input)


@native("Div", 14)
def div(A: Array, B: Array) -> Array:
    """A / B; integers truncate toward zero."""
    if A.dtype.kind in "iu":
        return np.floor_divide(np.subtract(A, np.fmod(A, B)), B)
    return np.divide(A, B)


@native("Where", 16)
def where(condition: Array, X: Array, Y: Array) -> Array:
    """X where the condition holds, Y elsewhere."""
    return select(condition, X, Y)


@native("Max", 13)
def maximum(first: Array, *rest: Array) -> Array:
    """The largest of all inputs; NaN wins."""
    for other in rest:
        first = blocks.maximum(first, other)
    return first


@native("Min", 13)
def minimum(first: Array, *rest: Array) -> Array:
    """The smallest of all inputs; NaN wins."""
    for other in rest:
        first = blocks.minimum(first, other)
    return first


@native("Clip", 13)
def clip(input: Array, min: Array | None = None, max: Array | None = None) -> Array:
    """Raise to ``min``, then lower to ``max``: where they cross, ``max`` holds."""
    if min is not None and max is not None:
        return clamp(input, min, max)
    x = input if min is None else blocks.maximum(input, min)
    return x if max is None else blocks.minimum(x, max)


@native("Pow", 15)
def power(X: Array, Y: Array) -> Array:
    """The exponents of common use as multiplications, which are tens of times faster than a power."""
    if X.dtype.kind == "f" and Y.ndim == 0:
        exponent = float(Y)
        if exponent == 2:
            return np.square(X)
        if exponent == 3:
            return np.multiply(np.square(X), X)
    return _general_power(X, Y)


def _general_power(X: Array, Y: Array) -> Array:
    if X.dtype == Y.dtype and X.dtype.kind in "fu":
        return np.power(X, Y)
    from entrepot.runtime.kernels import arithmetic
    from entrepot.runtime.providers.cpu.backend import NUMPY

    return arithmetic.power(NUMPY, X, Y)
