"""Sizes rounded to multiples, written so that torch sees what divides them.

torch (2.13) does not see that 4 divides ``length + (4 - length % 4) % 4``, or ``length - length % 4``: what such a size
is split into then gets sizes that nothing can be said about. Here both become multiples of a quotient. Nor does it see
that what is left of a padded size, once as much is cut off, is that size.

Of each quotient in what is rounded down it asks whether the sample leaves a remainder, and holds the size to that. Here
it does not ask.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import sympy  # type: ignore[import-untyped]
import torch

from entrepot.exporters.torch.capture.squares import without_roots
from entrepot.exporters.torch.capture.whole_parts import equal_but_for_rounding, whole_part
from entrepot.exporters.torch.rewriting.logarithms import logarithm
from entrepot.exporters.torch.upstream import ShapeEnv, SymNode, size_functions, with_formula

_REMAINDERS = (size_functions.Mod, size_functions.PythonMod)
_FLOORS = (size_functions.FloorToInt, size_functions.TruncToInt)
_ROOT = size_functions.OpaqueUnaryFn_sqrt
_STRICT = (sympy.StrictGreaterThan, sympy.StrictLessThan)
_RELATIONS = (sympy.GreaterThan, sympy.LessThan, *_STRICT)
_METHODS: dict[str, Callable[..., Any]] = {
    "__divmod__": lambda size, by: (size // by, size % by),
    "__rdivmod__": lambda size, number: (number // size, number % size),
    "bit_length": lambda size: math.ceil(logarithm(size + 1)),
}
"""Of whole numbers, which sizes of torch (2.13) lack, or for which they become fixed."""

_OPERATIONS = ("add", "sub", "mul", "mod", "ceil", "floor", "trunc", "sym_min", "ge", "gt", "le", "lt")


@contextlib.contextmanager
def rounded_sizes() -> Iterator[None]:
    """Inside, sizes that are rounded to multiples are computed as such."""
    with contextlib.ExitStack() as stack:
        for name in _OPERATIONS:
            stack.enter_context(mock.patch.object(SymNode, name, _rewriting(getattr(SymNode, name))))
        stack.enter_context(mock.patch.object(ShapeEnv, "_simplify_floor_div", lambda _, formula: formula))
        stack.enter_context(mock.patch.object(SymNode, "is_integer", _divides(SymNode.is_integer)))
        stack.enter_context(mock.patch.object(SymNode, "eq", equal_but_for_rounding(SymNode.eq)))
        for name, method in _METHODS.items():
            stack.enter_context(mock.patch.object(torch.SymInt, name, method, create=True))
        yield


@contextlib.contextmanager
def remainders_by_nothing() -> Iterator[None]:
    """Inside, a remainder by a size that is 0 in the sample is what is divided.

    torch (2.13) compares the strides of empty tensors so, whose sizes it does not know to be 0.
    """
    remainder = SymNode.mod

    def mod(number: Any, step: Any) -> Any:
        try:
            return remainder(number, step)
        except ZeroDivisionError:
            if step.expr.is_number:
                raise
            return with_formula(number.add(step), size_functions.PythonMod(number.expr, step.expr))

    with mock.patch.object(SymNode, "mod", mod):
        yield


def _divides(operation: Callable[..., Any]) -> Callable[..., Any]:
    """``(x / 4).is_integer()`` as a remainder of nothing, since torch (2.13) cannot write the question into a graph."""

    def is_integer(node: Any) -> Any:
        if not isinstance(node.expr, size_functions.IntTrueDiv):
            return operation(node)
        whole = node.eq(node.floor().sym_float())
        return with_formula(whole, sympy.Eq(size_functions.PythonMod(*node.expr.args), 0))

    return is_integer


def _rewriting(operation: Callable[..., Any]) -> Callable[..., Any]:
    def rewritten(node: Any, *others: Any) -> Any:
        found = operation(node, *others)
        while isinstance(found, SymNode) and (simpler := _simpler(found)) is not None:
            found = with_formula(found, simpler)
        return found

    return rewritten


def _simpler(node: Any) -> Any:
    found = multiple(node.expr)
    return without_roots(node) if found is None else found


def multiple(term: Any) -> Any:
    """A size as a multiple of a quotient, or with one in it; ``None`` if it is none."""
    if isinstance(term, _REMAINDERS):
        return _missing(*term.args)
    if isinstance(term, sympy.Add):
        return _whole(term)
    if isinstance(term, (size_functions.CeilToInt, *_FLOORS)):
        return _quotient(term)
    if isinstance(term, size_functions.Min):
        return _cut_off(term)
    return _ordered(term) if isinstance(term, _RELATIONS) else None


def _ordered(relation: Any) -> Any:
    """``x - x // 4 >= x // 4``, as of the bounds of a slice, holds for all sizes, and its opposite for none."""
    if not relation.has(size_functions.FloorDiv):
        return None
    is_strict = isinstance(relation, _STRICT)
    difference = relation.gts - relation.lts
    if _is_more(difference, 0 if is_strict else -1):
        return sympy.true
    return sympy.false if _is_more(-difference, -1 if is_strict else 0) else None


def _is_more(whole: Any, number: int) -> bool:
    """Whether a sum of sizes and quotients is certainly more than a number: with every quotient at its bound."""
    least = sympy.expand(whole)
    while least.has(size_functions.FloorDiv):
        parts = least.as_coefficients_dict()
        if not all(_is_quotient(part) for part in parts if part.has(size_functions.FloorDiv)):
            return False
        least = sympy.expand(sum(count * _bound(part, lower=count > 0) for part, count in parts.items()))
    return bool((least - number).is_positive)


def _is_quotient(term: Any) -> bool:
    return isinstance(term, size_functions.FloorDiv) and term.args[1].is_Integer and bool(term.args[1] > 0)


def _bound(term: Any, *, lower: bool) -> Any:
    if not isinstance(term, size_functions.FloorDiv):
        return term
    number, step = term.args
    return (number - step + 1 if lower else number) / step


def _missing(number: Any, step: Any) -> Any:
    """``-x % 4`` and ``(4 - x % 4) % 4``: what is missing to the next multiple."""
    if not (step.is_Integer and step > 0):
        return None
    inner = {each: each.args[0] for each in number.atoms(*_REMAINDERS) if each.args[1] % step == 0}
    number = sympy.expand(number.xreplace(inner))
    constant, rest = number.as_coeff_Add()
    if not rest.could_extract_minus_sign():
        return None
    number = rest + constant % step
    return number + step * size_functions.FloorDiv(step - 1 - number, step)


def _whole(total: Any) -> Any:
    """``x - x % 4``, perhaps with something more: it is ``x // 4 * 4``; ``x + x % 2`` is ``(x + 1) // 2 * 2``."""
    for remainder in {factor for term in total.args for factor in _factors(term) if isinstance(factor, _REMAINDERS)}:
        number, step = remainder.args
        if step == 2 and number in total.args and remainder in total.args:
            return total - remainder - number + 2 * size_functions.FloorDiv(number + 1, 2)
        whole = number - step * size_functions.FloorDiv(number, step)
        other = sympy.Add(*(_with(whole, term, remainder) for term in total.args))
        if len(sympy.Add.make_args(other)) < len(total.args):
            return other
    return None


def _factors(term: Any) -> tuple[Any, ...]:
    factors: tuple[Any, ...] = sympy.Mul.make_args(term)
    return factors


def _with(whole: Any, term: Any, remainder: Any) -> Any:
    """A term with ``whole`` as a factor in place of a remainder; what lies deeper is large at times, and stays."""
    return sympy.expand_mul(term / remainder * whole, deep=False) if remainder in _factors(term) else term


def _cut_off(least: Any) -> Any:
    """``min(x, (x + 3) // 4 * 4)``: what is left of a size that was padded to a multiple is that size."""
    for padded in least.args:
        step, _ = padded.primitive()
        others = [each for each in least.args if each != padded]
        if step.is_Integer and step > 1 and any(padded == _padded(each, step) for each in others):
            return least.func(*others)
    return None


def _padded(size: Any, step: Any) -> Any:
    return step * size_functions.FloorDiv(size + step - 1, step)


def _whole_root(square: Any) -> Any:
    """``int(math.sqrt((x // 4) * (x // 4)))``, as of the tokens of a square picture, is ``x // 4``."""
    number = square.args[0] if isinstance(square, size_functions.ToFloat) else square
    parts = number.as_powers_dict()
    if number.is_Integer or any(power % 2 or not base.is_nonnegative for base, power in parts.items()):
        return None
    return sympy.Mul(*(base ** (power // 2) for base, power in parts.items()))


def _quotient(rounded: Any) -> Any:
    """``math.ceil(x / 4)``, ``math.ceil((x - 8) / 4 + 1)`` and ``int(x / 4)``, in whole numbers; a square's root.

    Fractions of sizes are exact enough in double precision for that: up to 2^52 divided by what they are divided by.
    """
    (ratio,) = rounded.args
    if isinstance(ratio, _ROOT):
        return _whole_root(ratio.args[0])
    more, fraction = ratio.as_independent(*ratio.free_symbols, as_Add=True)
    if not isinstance(fraction, size_functions.IntTrueDiv) or not float(more).is_integer():
        return whole_part(rounded)
    number, step = fraction.args
    if not (step.is_Integer and step > 0):
        return None
    number += int(more) * step
    if isinstance(rounded, size_functions.TruncToInt) and not number.is_nonnegative:
        return None
    return size_functions.FloorDiv(number if isinstance(rounded, _FLOORS) else number + step - 1, step)
