"""Which size a result has that comes out of one of two branches, or of a loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.environment import expression, samples, value_of


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


def sizes_where(condition: Any, hints: Mapping[Any, int], *, holds: bool) -> dict[Any, int] | None:
    """Values of the symbols of a condition for which it holds or does not; empty where those in the sample do."""
    symbols = sorted(condition.free_symbols, key=str)
    if value_of(condition, hints) is holds:
        return {}
    for values in samples(symbols, hints):
        if min(values.values()) > 1 and value_of(condition, values) is holds:
            return values
    return next((values for values in samples(symbols, hints) if value_of(condition, values) is holds), None)


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
