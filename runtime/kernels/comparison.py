"""Comparisons and logic, elementwise with broadcasting; the results are bool."""

from __future__ import annotations

from entrepot.runtime.kernels.backend import Array, Backend
from entrepot.runtime.kernels.table import shared


@shared("Equal", 19)
def equal(xp: Backend, A: Array, B: Array) -> Array:
    """A == B; NaN equals nothing."""
    return A == B


@shared("Greater", 13)
def greater(xp: Backend, A: Array, B: Array) -> Array:
    """A > B."""
    return A > B


@shared("GreaterOrEqual", 16)
def greater_or_equal(xp: Backend, A: Array, B: Array) -> Array:
    """A >= B."""
    return A >= B


@shared("Less", 13)
def less(xp: Backend, A: Array, B: Array) -> Array:
    """A < B."""
    return A < B


@shared("LessOrEqual", 16)
def less_or_equal(xp: Backend, A: Array, B: Array) -> Array:
    """A <= B."""
    return A <= B


@shared("And", 7)
def logical_and(xp: Backend, A: Array, B: Array) -> Array:
    """Both."""
    return A & B


@shared("Or", 7)
def logical_or(xp: Backend, A: Array, B: Array) -> Array:
    """Either."""
    return A | B


@shared("Xor", 7)
def logical_xor(xp: Backend, A: Array, B: Array) -> Array:
    """Exactly one."""
    return A ^ B


@shared("Not", 1)
def logical_not(xp: Backend, X: Array) -> Array:
    """The opposite."""
    return ~X


@shared("IsNaN", 20)
def is_nan(xp: Backend, X: Array) -> Array:
    """Whether each element is NaN."""
    return xp.isnan(X)


@shared("IsInf", 20)
def is_inf(xp: Backend, X: Array, *, detect_negative: int = 1, detect_positive: int = 1) -> Array:
    """Whether each element is one of the infinities asked for."""
    infinite = xp.isinf(X)
    zero = xp.scalar(0, like=X)
    if not detect_negative:
        infinite = infinite & (X > zero)
    return infinite if detect_positive else infinite & (X < zero)


@shared("Where", 16)
def where(xp: Backend, condition: Array, X: Array, Y: Array) -> Array:
    """X where the condition holds, Y elsewhere."""
    return xp.where(condition, X, Y)
