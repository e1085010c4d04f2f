"""Values with Python's arithmetic, in which formulas are written down: each operation is a node of a ``Builder``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import onnx_ir as ir

from entrepot.exporters.building import Builder

Number: TypeAlias = "Term | float | int"

_NEGLIGIBLE = 1e-10
"""A term of a series that is too small to matter in float32."""


class Term:
    """A value that is added, compared and so on; numbers take its type.

    Args:
        build: Where the nodes are written.
        value: What it stands for.
    """

    __slots__ = ("build", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, build: Builder, value: ir.Value) -> None:
        self.build = build
        self.value = value

    def op(self, name: str, *others: Any, **attributes: Any) -> Term:
        """Apply an operator to it and other operands."""
        operands = [each.value if isinstance(each, Term) else each for each in others]
        return Term(self.build, self.build.op(name, self.value, *operands, **attributes))

    def _turned(self, name: str, other: Number) -> Term:
        return self._constant(other).op(name, self)

    def _constant(self, number: Any) -> Term:
        return Term(self.build, self.build.constant(number, self.value.dtype))

    def __add__(self, other: Number) -> Term:
        return self.op("Add", other)

    __radd__ = __add__

    def __sub__(self, other: Number) -> Term:
        return self.op("Sub", other)

    def __rsub__(self, other: Number) -> Term:
        return self._turned("Sub", other)

    def __mul__(self, other: Number) -> Term:
        return self.op("Mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Term:
        return self.op("Div", other)

    def __rtruediv__(self, other: Number) -> Term:
        return self._turned("Div", other)

    def __pow__(self, other: Number) -> Term:
        return self.op("Pow", other)

    def __rpow__(self, other: Number) -> Term:
        return self._turned("Pow", other)

    def __neg__(self) -> Term:
        return self.op("Neg")

    def __lt__(self, other: Number) -> Term:
        return self.op("Less", other)

    def __le__(self, other: Number) -> Term:
        return self.op("LessOrEqual", other)

    def __gt__(self, other: Number) -> Term:
        return self.op("Greater", other)

    def __ge__(self, other: Number) -> Term:
        return self.op("GreaterOrEqual", other)

    def __eq__(self, other: object) -> Term:  # type: ignore[override]
        return self.op("Equal", other)

    def __and__(self, other: Term) -> Term:
        return self.op("And", other)

    def __or__(self, other: Term) -> Term:
        return self.op("Or", other)

    def __invert__(self) -> Term:
        return self.op("Not")

    def abs(self) -> Term:
        """Its size."""
        return self.op("Abs")

    def exp(self) -> Term:
        """The exponential function of it."""
        return self.op("Exp")

    def log(self) -> Term:
        """Its natural logarithm."""
        return self.op("Log")

    def sqrt(self) -> Term:
        """Its square root."""
        return self.op("Sqrt")

    def floor(self) -> Term:
        """The next whole number below."""
        return self.op("Floor")

    def round(self) -> Term:
        """The nearest whole number."""
        return self.op("Round")

    def sin(self) -> Term:
        """Its sine."""
        return self.op("Sin")

    def cos(self) -> Term:
        """Its cosine."""
        return self.op("Cos")

    def isnan(self) -> Term:
        """Whether it is no number."""
        return self.op("IsNaN")

    def isinf(self) -> Term:
        """Whether it is infinite, either way."""
        return self.op("IsInf")

    def at_least(self, bound: Number) -> Term:
        """The larger of both."""
        return self.op("Max", bound)

    def at_most(self, bound: Number) -> Term:
        """The smaller of both."""
        return self.op("Min", bound)

    def unsqueeze(self) -> Term:
        """With a last axis of one element."""
        return self.op("Unsqueeze", [-1])

    def sum(self) -> Term:
        """Summed along its last axis."""
        return self.op("ReduceSum", [-1], keepdims=0)

    def full(self, number: float) -> Term:
        """A number in its type."""
        return self._constant(number)


def choose(condition: Term, yes: Number, no: Number) -> Term:
    """``yes`` where the condition holds; one of both has to be a term, numbers take its type."""
    known = yes if isinstance(yes, Term) else no
    assert isinstance(known, Term)
    first, second = (each if isinstance(each, Term) else known.full(each) for each in (yes, no))
    return condition.op("Where", first, second)


def in_double(function: Callable[..., Term]) -> Callable[..., ir.Value]:
    """A function of values that computes in float64 and rounds to the type of the first one."""

    @functools.wraps(function)
    def called(build: Builder, *values: ir.Value, **how: Any) -> ir.Value:
        terms = [Term(build, build.cast(each, ir.DataType.DOUBLE)) for each in values]
        return build.cast(function(*terms, **how).value, values[0].dtype)

    return called


def polynomial(numbers: Sequence[float], x: Term) -> Term:
    """A polynomial, the highest power first."""
    value: Number = numbers[0]
    for number in numbers[1:]:
        value = value * x + number
    assert isinstance(value, Term)
    return value


def clenshaw(coefficients: Sequence[float], x: Term, *, double: bool = True) -> Term:
    """A sum of Chebyshev polynomials at ``x`` in [-1, 1], with the terms that float32, or float64, can resolve."""
    kept = [number for number in coefficients if double or abs(number) > _NEGLIGIBLE]
    after: Number = x * 0
    twice: Number = 0.0
    for number in reversed(kept[1:]):
        after, twice = 2 * x * after - twice + number, after
    return x * after - twice + kept[0]
