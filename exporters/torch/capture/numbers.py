"""What torch computes of single numbers, done with sizes that vary: in whole numbers and their ratios, exactly."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import torch

Whole: TypeAlias = "int | torch.SymInt"

_FINEST = 1024
"""The largest denominator that a constant may have."""


@dataclass(frozen=True, eq=False)
class Ratio:
    """A number with a fraction: ``top / bottom``.

    Attributes:
        top: A size, or what is computed of sizes.
        bottom: Positive.
    """

    top: Whole
    bottom: int = 1

    @classmethod
    def of(cls, number: Any) -> Ratio | None:
        """A number as one; ``None`` for other things, and for constants that are no ratios of small numbers."""
        if isinstance(number, Ratio) or number is None:
            return number
        if isinstance(number, float) and math.isfinite(number):
            exact = Fraction(number)
            return cls(exact.numerator, exact.denominator) if exact.denominator <= _FINEST else None
        is_whole = isinstance(number, int | torch.SymInt) and not isinstance(number, bool)
        return cls(number) if is_whole else None

    def floor(self) -> Whole:
        """The largest whole number that is not above it."""
        return self.top // self.bottom if self.bottom > 1 else self.top

    def ceil(self) -> Whole:
        """The smallest whole number that is not below it."""
        return (self.top + self.bottom - 1) // self.bottom if self.bottom > 1 else self.top


def computed(
    name: str, operands: Sequence[Any], how: Mapping[str, Any], dtype: torch.dtype
) -> Whole | Ratio | torch.SymBool | bool | None:
    """What a function of torch, by its name in ``torch.Tensor``, returns for numbers; ``None`` if that is not known.

    Args:
        name: Its name.
        operands: Its arguments by position, tensors as the numbers in them.
        how: Its other arguments.
        dtype: Of the result.
    """
    rounding = how.get("rounding_mode")
    plain = name.strip("_") if name.startswith("__") else name
    if name in _CAST:
        return _element(Ratio.of(operands[0]), dtype)
    ratios = [Ratio.of(each) for each in operands]
    numbers = [each for each in ratios if each is not None]
    if len(numbers) < len(operands) or set(how) - {"rounding_mode"} or rounding not in (None, "floor"):
        return None
    if dtype == torch.bool:
        compare = _COMPARED.get(plain)
        return None if compare is None or len(numbers) != 2 else _compared(compare, *numbers)
    if rounding == "floor":
        plain = "floor_divide"
    function = _FUNCTIONS.get(plain)
    if function is None and plain.startswith("r"):
        function, numbers = _FUNCTIONS.get(plain[1:]), numbers[::-1]
    return None if function is None else _element(function(*numbers), dtype)


def _element(number: Ratio | None, dtype: torch.dtype) -> Whole | Ratio | None:
    """A number as an element of a type: with a fraction only if that can have one."""
    if number is None:
        return None
    if dtype.is_floating_point:
        return number
    if dtype not in (torch.int32, torch.int64):
        return None
    if number.bottom == 1:
        return number.top
    return number.floor() if number.top >= 0 else number.ceil()  # towards zero


def _compared(compare: Callable[[Any, Any], Any], one: Ratio, other: Ratio) -> Any:
    return compare(one.top * other.bottom, other.top * one.bottom)


def _sum(one: Ratio, other: Ratio) -> Ratio:
    if one.bottom == other.bottom:
        return Ratio(one.top + other.top, one.bottom)
    return Ratio(one.top * other.bottom + other.top * one.bottom, one.bottom * other.bottom)


def _negative(number: Ratio) -> Ratio:
    return Ratio(-number.top, number.bottom)


def _product(one: Ratio, other: Ratio) -> Ratio:
    return Ratio(one.top * other.top, one.bottom * other.bottom)


def _quotient(one: Ratio, other: Ratio) -> Ratio | None:
    """By a constant: a size might be 0."""
    if not isinstance(other.top, int) or other.top == 0:
        return None
    sign = 1 if other.top > 0 else -1
    return Ratio(one.top * other.bottom * sign, one.bottom * abs(other.top))


def _whole_quotient(one: Ratio, other: Ratio) -> Ratio | None:
    exact = _quotient(one, other)
    return None if exact is None else Ratio(exact.floor())


def _rest(one: Ratio, other: Ratio) -> Ratio | None:
    """What is left, with the sign of the divisor."""
    if one.bottom == other.bottom == 1 and isinstance(other.top, int) and other.top > 0:
        return Ratio(one.top % other.top)  # of which torch knows its limits
    whole = _whole_quotient(one, other)
    return None if whole is None else _sum(one, _negative(_product(whole, other)))


def _rest_towards_zero(one: Ratio, other: Ratio) -> Ratio | None:
    exact = _quotient(one, other)
    if exact is None:
        return None
    if exact.top >= 0 and one.top >= 0:
        return _rest(one, other)
    whole = Ratio(exact.floor() if exact.top >= 0 else exact.ceil())
    return _sum(one, _negative(_product(whole, other)))


_FUNCTIONS: dict[str, Callable[..., Ratio | None]] = {
    "add": _sum,
    **dict.fromkeys(("sub", "subtract"), lambda one, other: _sum(one, _negative(other))),
    **dict.fromkeys(("mul", "multiply"), _product),
    **dict.fromkeys(("div", "divide", "true_divide", "truediv"), _quotient),
    **dict.fromkeys(("floor_divide", "floordiv"), _whole_quotient),
    **dict.fromkeys(("remainder", "mod"), _rest),
    **dict.fromkeys(("neg", "negative"), _negative),
    "fmod": _rest_towards_zero,
    "ceil": lambda number: Ratio(number.ceil()),
    "floor": lambda number: Ratio(number.floor()),
}
_CAST = frozenset(("to", "long", "int", "float", "double", "clone", "detach", "contiguous"))
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
