"""A number that differs between captures as a formula of their sizes: the simplest one that gives all of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from entrepot.exporters.paths.expression import Expression
from entrepot.exporters.paths.path import Sizes

_DIVISORS = range(2, 33)
_PRECISION = 2e-7
"""Relative: constants of graphs are in single precision."""


def fitted(
    numbers: Sequence[float], sizes: Sequence[Sizes], known: Sequence[Expression] = ()
) -> Expression | int | float | None:
    """The formula of the numbers, or the number itself where there is but one; ``None`` if there is no formula.

    Args:
        numbers: What a capture has at each of ``sizes``.
        sizes: Where the captures were made.
        known: Formulas that are known to occur.
    """
    if all(number == numbers[0] for number in numbers):
        return numbers[0]
    whole = all(isinstance(number, int) for number in numbers)
    if whole and (multiple := _multiple(numbers, sizes)) is not None:
        return multiple
    candidates = [*_atoms_known(known), *_atoms(sizes)]
    for text in candidates:
        values = [Expression(text)(each) for each in sizes]
        if any(value is None for value in values):
            continue
        found = _whole(text, values, numbers) if whole else _real(text, values, numbers)
        if found is not None:
            return found
    return (_plane(numbers, sizes) or _ratio(numbers, sizes)) if whole else _fraction(numbers, sizes)


def _multiple(numbers: Sequence[float], sizes: Sequence[Sizes]) -> Expression | None:
    """A whole multiple of a size, or of a product of two: what most constants are.

    These are asked first. A line in another size goes through any two numbers: 25 at a batch of 3 and 13 at one of 5
    are ``43 - 6 * batch``, but also the length.
    """
    symbols = [symbol for symbol in sizes[0] if len({each[symbol] for each in sizes}) > 1]
    pairs = itertools.combinations_with_replacement(symbols, 2)
    for text in (*symbols, *(f"{first} * {second}" for first, second in pairs)):
        values = [Expression(text)(each) for each in sizes]
        factors = {divmod(number, value) if value else None for value, number in zip(values, numbers, strict=True)}
        factor = factors.pop() if len(factors) == 1 else None
        if factor is not None and factor[0] > 0 and not factor[1]:
            return Expression(_linear(text, int(factor[0]), 0))
    return None


def _whole(text: str, values: Sequence[float], numbers: Sequence[float]) -> Expression | None:
    """``a * text + b`` with whole ``a`` and ``b``."""
    line = _line(values, numbers)
    if line is None or not (line[0].is_integer() and line[1].is_integer()):
        return None
    slope, offset = map(int, line)
    if slope < 0 and "%" in text:
        return None  # 7 - n % 7 is hardly meant: -n % 7 is, which differs where 7 divides n
    if not all(
        isinstance(value, int) and slope * value + offset == number
        for value, number in zip(values, numbers, strict=True)
    ):
        return None
    return Expression(_linear(text, slope, offset))


_CURVES: dict[str, Callable[[float], float]] = {
    "{}": lambda x: x,
    "1.0 / ({})": lambda x: 1 / x,
    "sqrt({})": math.sqrt,
    "1.0 / sqrt({})": lambda x: 1 / math.sqrt(x),
    "log({})": math.log,
    "1.0 / log({})": lambda x: 1 / math.log(x),
}


def _real(text: str, values: Sequence[float], numbers: Sequence[float]) -> Expression | None:
    """``a * curve(text) + b``, without ``b`` where there are too few numbers to tell."""
    for form, curve in _CURVES.items():
        try:
            points = [curve(value) for value in values]
        except (ValueError, ArithmeticError):
            continue
        for line in (_proportion(points, numbers), _line(points, numbers) if len(set(points)) > 2 else None):
            if line is not None and all(
                math.isclose(line[0] * point + line[1], number, rel_tol=_PRECISION)
                for point, number in zip(points, numbers, strict=True)
            ):
                return Expression(_linear(form.format(text), _neat(line[0]), _neat(line[1])))
    return None


def _neat(number: float) -> float:
    """A number without the noise of single precision."""
    for digits in range(1, 7):
        rounded = float(f"{number:.{digits}g}")
        if math.isclose(rounded, number, rel_tol=_PRECISION, abs_tol=1e-9):
            return rounded
    fraction = number.as_integer_ratio() if number else (0, 1)
    return number if fraction[1] != 1 else float(number)


def _proportion(values: Sequence[float], numbers: Sequence[float]) -> tuple[float, float] | None:
    at = max(range(len(values)), key=lambda each: abs(values[each]))
    return (numbers[at] / values[at], 0.0) if values[at] else None


def _line(values: Sequence[float], numbers: Sequence[float]) -> tuple[float, float] | None:
    """Slope and offset of the line through the two points that are furthest apart."""
    low, high = min(range(len(values)), key=values.__getitem__), max(range(len(values)), key=values.__getitem__)
    if values[low] == values[high]:
        return None
    slope = (numbers[high] - numbers[low]) / (values[high] - values[low])
    return slope, numbers[low] - slope * values[low]


def _linear(text: str, slope: float, offset: float) -> str:
    term = text if slope == 1 else f"{slope!r} * ({text})"
    return term if offset == 0 else f"{term} + {offset!r}" if offset > 0 else f"{term} - {-offset!r}"


def _atoms_known(known: Sequence[Expression]) -> Iterator[str]:
    return (each.text for each in known)


def _atoms(sizes: Sequence[Sizes]) -> Iterator[str]:
    """Terms of one symbol, then products of two."""
    symbols = [symbol for symbol in sizes[0] if len({each[symbol] for each in sizes}) > 1]
    yield from symbols
    yield from (f"({symbol} {sign} 1)" for symbol in symbols for sign in "+-")
    yield from (f"{symbol} * {symbol}" for symbol in symbols)
    for divisor in _DIVISORS if len(sizes) > 3 else ():
        for symbol in symbols:
            yield f"{symbol} // {divisor}"
            yield from (f"({symbol} + {add}) // {divisor}" for add in range(1, divisor))
            yield f"{symbol} % {divisor}"
            yield f"-{symbol} % {divisor}"
    yield from (f"{first} * {second}" for first, second in itertools.combinations(symbols, 2))
    for first, second in itertools.combinations(symbols, 2):
        yield from (f"({first} // {a}) * ({second} // {a})" for a in _DIVISORS)
        yield from (f"(({first} + {a - 1}) // {a}) * (({second} + {a - 1}) // {a})" for a in _DIVISORS)
        yield f"{first} + {second}"
        yield f"Max({first}, {second})"
        yield f"Min({first}, {second})"
    for symbol in symbols:
        numbers = sorted({each[symbol] for each in sizes})
        yield from (
            f"{extreme}({symbol}, {number})" for number in range(numbers[0], numbers[-1]) for extreme in ("Max", "Min")
        )


def _plane(numbers: Sequence[float], sizes: Sequence[Sizes]) -> Expression | None:
    """``a * one + b * other + c``."""
    symbols = [symbol for symbol in sizes[0] if len({each[symbol] for each in sizes}) > 1]
    for one, other in itertools.combinations(symbols, 2):
        points = np.array([[each[one], each[other], 1] for each in sizes], float)
        if np.linalg.matrix_rank(points) < 3:
            continue
        factors = np.rint(np.linalg.lstsq(points, np.array(numbers, float), rcond=None)[0])
        if np.array_equal(points @ factors, np.array(numbers, float)):
            a, b, c = map(int, factors)
            return Expression(f"{a} * {one} + {b} * {other} + {c}")
    return None


def _fraction(numbers: Sequence[float], sizes: Sequence[Sizes]) -> Expression | None:
    """``(a * one + b) / (other + c)``, as of evenly spaced points."""
    symbols = [symbol for symbol in sizes[0] if len({each[symbol] for each in sizes}) > 1]
    for (one, other), shift in itertools.product(itertools.permutations(symbols, 2), (0, -1, 1)):
        below = np.array([each[other] + shift for each in sizes], float)
        points = np.array([[each[one], each[other], 1] for each in sizes], float)
        if len(sizes) < 6 or np.linalg.matrix_rank(points) < 3 or not below.all():
            continue
        factors = np.linalg.lstsq(points / below[:, None], np.array(numbers, float), rcond=None)[0]
        a, b, c = (_neat(round(float(factor), 6)) for factor in factors)
        if np.allclose(points @ (a, b, c) / below, numbers, rtol=_PRECISION, atol=_PRECISION):
            return Expression(f"({a!r} * {one} + {b!r} * {other} + {c!r}) / ({other} + {shift})")
    return None


def _ratio(numbers: Sequence[float], sizes: Sequence[Sizes]) -> Expression | None:
    """``(a * size + b) // c``."""
    if len(sizes) < 4:
        return None
    symbols = [symbol for symbol in sizes[0] if len({each[symbol] for each in sizes}) > 1]
    for symbol, below in itertools.product(symbols, range(2, 9)):
        for factor in (each for each in range(2, 17) if math.gcd(each, below) == 1):
            low = max(number * below - factor * each[symbol] for number, each in zip(numbers, sizes, strict=True))
            high = (
                min(number * below - factor * each[symbol] for number, each in zip(numbers, sizes, strict=True)) + below
            )
            if low < high:
                return Expression(f"({_linear(f'{factor} * {symbol}', 1, int(low))}) // {below}")
    return None
