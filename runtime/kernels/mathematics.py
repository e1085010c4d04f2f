"""Transcendental functions, elementwise."""

from __future__ import annotations

from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.table import shared


@shared("Exp", 13)
def exp(xp: Backend, input: Array) -> Array:
    """Euler's number to the power of the input."""
    return xp.exp(input)


@shared("Log", 13)
def log(xp: Backend, input: Array) -> Array:
    """The natural logarithm; NaN below zero."""
    return xp.log(input)


@shared("Erf", 13)
def erf(xp: Backend, input: Array) -> Array:
    """The error function."""
    return xp.erf(input)


@shared("Sin", 22)
def sin(xp: Backend, input: Array) -> Array:
    """The sine of an angle in radians."""
    return xp.sin(input)


@shared("Cos", 22)
def cos(xp: Backend, input: Array) -> Array:
    """The cosine of an angle in radians."""
    return xp.cos(input)


@shared("Tan", 22)
def tan(xp: Backend, input: Array) -> Array:
    """The tangent of an angle in radians."""
    return xp.tan(input)


@shared("Asin", 22)
def asin(xp: Backend, input: Array) -> Array:
    """The arc sine, in radians; NaN outside [-1, 1]."""
    return xp.asin(input)


@shared("Acos", 22)
def acos(xp: Backend, input: Array) -> Array:
    """The arc cosine, in radians; NaN outside [-1, 1]."""
    return xp.acos(input)


@shared("Atan", 22)
def atan(xp: Backend, input: Array) -> Array:
    """The arc tangent, in radians."""
    return xp.atan(input)


@shared("Sinh", 22)
def sinh(xp: Backend, input: Array) -> Array:
    """The hyperbolic sine."""
    return xp.sinh(input)


@shared("Cosh", 22)
def cosh(xp: Backend, input: Array) -> Array:
    """The hyperbolic cosine."""
    return xp.cosh(input)


@shared("Tanh", 13)
def tanh(xp: Backend, input: Array) -> Array:
    """The hyperbolic tangent."""
    return xp.tanh(input)


@shared("Asinh", 22)
def asinh(xp: Backend, input: Array) -> Array:
    """The inverse hyperbolic sine."""
    return xp.asinh(input)


@shared("Acosh", 22)
def acosh(xp: Backend, input: Array) -> Array:
    """The inverse hyperbolic cosine; NaN below 1."""
    return xp.acosh(input)


@shared("Atanh", 22)
def atanh(xp: Backend, input: Array) -> Array:
    """The inverse hyperbolic tangent; NaN outside [-1, 1]."""
    return xp.atanh(input)
