"""Which size a result has that comes out of one of two branches, or of a loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch

from entrepot.exporters.torch.rewriting.environment import expression, samples, value_of
from entrepot.exporters.torch.upstream import size_functions


def unified(condition: Any, first: Any, second: Any, hints: Mapping[Any, int]) -> Any:
    """The one of two sizes that is right whether a condition on sizes holds or not; ``None`` if neither is.

    Args:
        condition: In sympy, over the symbols of sizes; ``None`` where it depends on data.
        first: What is right where it holds.
        second: What is right elsewhere.
        hints: The sizes in the sample.
    """
    one, other = expression(first), expression(second)
    if one == other:
        return first
    if condition is None:
        return None
    symbols = sorted(condition.free_symbols | one.free_symbols | other.free_symbols, key=str)
    found = [
        (bool(holds), value_of(one, each), value_of(other, each))
        for each in samples(symbols, hints)
        if (holds := value_of(condition, each)) is not None
    ]
    if not found or any(None in each for each in found):
        return None
    for wish, place in ((first, 1), (second, 2)):
        if all(each[place] == (each[1] if each[0] else each[2]) for each in found):
            return wish
    return None


def by_remainder(condition: Any, first: Any, second: Any, env: Any) -> Any:
    """A number that depends on whether a size is a multiple, as one formula of the remainder.

    ``1 if height % 2 == 0 else 2`` is ``1 + height % 2``: what is padded by it has a size that torch can reason about,
    which it cannot about a size that comes out of a branch. What is padded to the next multiple of 4, unless it is one,
    has the size ``4 * ((height + 3) // 4)``.

    Args:
        condition: In sympy; ``None`` where it depends on data.
        first: The number where it holds.
        second: The number elsewhere.
        env: The shape environment.

    Returns:
        ``None`` if the condition is about something else, or the formula is not right in every sample.
    """
    about = isinstance(condition, sympy.Eq | sympy.Ne) and condition.rhs.is_zero
    if not about or not isinstance(condition.lhs, size_functions.Mod | size_functions.PythonMod):
        return None
    remainder, hints = condition.lhs, env.backed_var_to_val
    one, other = map(expression, (first, second) if isinstance(condition, sympy.Eq) else (second, first))
    symbols = sorted(remainder.free_symbols | one.free_symbols | other.free_symbols, key=str)
    found = [(value_of(remainder, each), each) for each in samples(symbols, hints)]
    one = _same_in_all(one, [each for value, each in found if value == 0])
    other = _same_in_all(other, [each for value, each in found if value])
    base, step = remainder.args
    divides = remainder if step == 2 else size_functions.Min(1, remainder)
    to_next = step * size_functions.FloorDiv(base + step - 1, step) - base
    for joined in (one + to_next, one + (other - one) * divides):
        pairs = ((value_of(other if value else one, each), value_of(joined, each)) for value, each in found)
        if found and all(None not in pair and pair[0] == pair[1] for pair in pairs):
            return env.create_symintnode(joined, hint=value_of(joined, hints))
    return None


def by_extreme(condition: Any, first: Any, second: Any, env: Any) -> Any:
    """A size that a condition on sizes makes the larger of two, or the smaller, as one formula of both.

    What is padded to 4 where it is shorter has the size ``length + max(0, 4 - length)``, which torch can reason about:
    of its last ``length`` elements it knows how many they are, which it does not of those of ``max(4, length)``.

    Args:
        condition: In sympy; ``None`` where it depends on data.
        first: The size where it holds.
        second: The size elsewhere.
        env: The shape environment.

    Returns:
        ``None`` if it is neither in every sample.
    """
    if condition is None:
        return None
    one, other, hints = expression(first), expression(second), env.backed_var_to_val
    symbols = sorted(condition.free_symbols | one.free_symbols | other.free_symbols, key=str)
    known = [[value_of(each, values) for each in (condition, one, other)] for values in samples(symbols, hints)]
    if not known or any(None in each for each in known):
        return None
    more = other - one if one.free_symbols else one - other
    base = one if one.free_symbols else other
    for sign, extreme in ((1, max), (-1, min)):
        if all((a if holds else b) == extreme(a, b) for holds, a, b in known):
            joined = base + sign * size_functions.Max(0, sign * more)
            return env.create_symintnode(joined, hint=value_of(joined, hints))
    return None


def _same_in_all(expr: Any, values: Sequence[Mapping[Any, int]]) -> Any:
    """An expression, or the number that it is at each of some sizes."""
    found = {value_of(expr, each) for each in values}
    return sympy.Integer(found.pop()) if len(found) == 1 and None not in found else expr


def sizes_where(condition: Any, hints: Mapping[Any, int], *, holds: bool) -> dict[Any, int] | None:
    """Values of the symbols of a condition for which it holds or does not; empty where those in the sample do."""
    symbols = sorted(condition.free_symbols, key=str)
    if value_of(condition, hints) is holds:
        return {}
    for values in samples(symbols, hints):
        if min(values.values()) > 1 and value_of(condition, values) is holds:
            return values
    return next((values for values in samples(symbols, hints) if value_of(condition, values) is holds), None)


def ones_where(condition: Any, hints: Mapping[Any, int], *, holds: bool) -> dict[Any, int]:
    """The symbols that have to be 1 for a condition to hold, or not to, each with that number; size 0 is left out."""
    symbols = sorted(condition.free_symbols, key=str)
    tried = (values for values in samples(symbols, hints) if min(values.values()) > 0)
    found = [values for values in tried if value_of(condition, values) is holds]
    return {symbol: 1 for symbol in symbols if found and all(values[symbol] == 1 for values in found)}


def breaks(guards: Sequence[Any], condition: Any, hints: Mapping[Any, int], *, holds: bool) -> Any:
    """A condition among ``guards`` that does not hold whenever another does, or does not; ``None`` if there is none."""
    for guard in guards:
        symbols = sorted(guard.expr.free_symbols | condition.free_symbols, key=str)
        for values in samples(symbols, hints):
            if (
                min(values.values()) > 1
                and value_of(condition, values) is holds
                and value_of(guard.expr, values) is False
            ):
                return guard
    return None


def as_tensor(value: Any) -> torch.Tensor:
    """A number or condition of Python's as a tensor without axes, exact."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, torch.SymBool):
        return torch.scalar_tensor(torch.sym_ite(value, 1, 0), dtype=torch.int64) != 0
    if isinstance(value, torch.SymInt):
        return torch.scalar_tensor(value, dtype=torch.int64)  # type: ignore[arg-type]
    if isinstance(value, bool):
        return torch.full((), value, dtype=torch.bool)
    if isinstance(value, int):
        return torch.full((), value, dtype=torch.int64)
    return torch.scalar_tensor(value, dtype=torch.float64)
