"""Sizes that are scaled and scaled back before they are rounded: ``int((h + 0.1) / 14 * 14)`` is ``h``.

torch (2.13) does not see it, so that what is interpolated by ``scale_factor=(h + 0.1) / 14`` would not fit what has the
size ``h``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy  # type: ignore[import-untyped]

from entrepot.exporters.torch.translations.waves import is_power_of_two
from entrepot.exporters.torch.upstream import SymNode, size_functions, with_formula

_ROUNDED = (size_functions.FloorToInt, size_functions.TruncToInt)
_QUOTIENTS = (size_functions.FloatTrueDiv, size_functions.IntTrueDiv)
_MARGIN = sympy.Rational(1, 10**6)
"""Further from a whole number than double precision is off, for sizes below a billion."""


def whole_part(rounded: Any) -> Any:
    """What is rounded off a size and a fraction, if that is the size however it is computed; else ``None``."""
    if not isinstance(rounded, _ROUNDED):
        return None
    size, fraction = _parts(rounded)
    if size is None or not (_MARGIN <= fraction <= 1 - _MARGIN or _is_exact(rounded)):
        return None
    return size


def equal_but_for_rounding(equal: Callable[..., Any]) -> Callable[..., Any]:
    """``int(h / 7 * 7) == h``, which holds but for a few sizes, at which double precision is off.

    The file computes the size as the module does: what does not fit then is refused by both.
    """

    def decided(node: Any, other: Any) -> Any:
        found = equal(node, other)
        if not isinstance(found, SymNode):
            return found
        sizes = {each: size for each in found.expr.atoms(*_ROUNDED) if (size := _parts(each)[0]) is not None}
        return with_formula(found, sympy.true) if sizes and found.expr.xreplace(sizes) == sympy.true else found

    return decided


def _parts(rounded: Any) -> tuple[Any, Any]:
    """A size and the fraction that is rounded off it, in real numbers; ``None`` for no size."""
    constant, rest = sympy.expand(_real(rounded.args[0])).as_coeff_Add()
    whole = rest + sympy.floor(constant)
    fits = not rest.is_number and rest.is_integer and whole.is_nonnegative
    return (whole if fits else None), constant - sympy.floor(constant)


def _real(number: Any) -> Any:
    """A number of double precision as the number that it is, and what is computed as if nothing were rounded."""
    if isinstance(number, sympy.Float):
        return sympy.Rational(float(number))
    if isinstance(number, size_functions.ToFloat):
        return _real(number.args[0])
    if isinstance(number, _QUOTIENTS):
        return _real(number.args[0]) / _real(number.args[1])
    if isinstance(number, sympy.Add | sympy.Mul):
        return number.func(*map(_real, number.args))
    return number


def _is_exact(rounded: Any) -> bool:
    """Whether nothing is divided but by powers of two, and all numbers are whole: nothing is then lost on the way."""
    divisors = [_real(quotient.args[1]) for quotient in rounded.atoms(*_QUOTIENTS)]
    numbers = [_real(number) for number in rounded.atoms(sympy.Float)]
    if not all(each.is_Integer for each in numbers):
        return False
    return all(each.is_Integer and each > 0 and is_power_of_two(int(each)) for each in divisors)
