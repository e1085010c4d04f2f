"""Which sizes a captured program accepts, as conditions over the symbols of its axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.axes.limits import limits_of
from entrepot.exporters.torch.upstream import size_notes

_TRIED = 256  # the sizes below it reveal a step of up to a quarter of it


def program_limits(
    program: torch.export.ExportedProgram, groups: Sequence[Group], sizes: Mapping[str, Any]
) -> list[str]:
    """Ranges and steps of the program's dimensions; derived ones are formulas in the shape.

    Args:
        program: Has a range for each of its symbols.
        groups: Its axes, by expression.
        sizes: The program's expression of each group's size, by the group's symbol.
    """
    texts: list[str] = []
    for group in groups:
        size = sizes[group.symbol]
        if size.is_Symbol:
            bounds = program.range_constraints.get(size)
            texts += limits_of(group, *_range(bounds)) if bounds is not None else []
            texts += _steps(program, size, group.symbol)
        elif size.free_symbols.isdisjoint(sizes.values()):
            texts += _multiple(group.symbol, size)
    return texts


def _steps(program: torch.export.ExportedProgram, size: Any, symbol: str) -> Iterator[str]:
    """``width % 4 == 0``, where the equations that the capture found for a size hold for its multiples of 4 only."""
    found = [guard.condition for guard in size_notes(program).guards]
    equations = [each for each in found if isinstance(each, sympy.Eq) and each.free_symbols == {size}]
    taken = [
        n for n in range(2, _TRIED) if equations and all(each.xreplace({size: sympy.Integer(n)}) for each in equations)
    ]
    for step in range(2, _TRIED // 4):
        if taken and taken == [n for n in range(taken[0], _TRIED) if n % step == 0]:
            yield f"{symbol} % {step} == 0"
            return


def _range(bounds: Any) -> tuple[int, int | None]:
    """Torch's ranges begin at 2 where it treats 0 and 1 as special cases."""
    least = int(bounds.lower)
    return least if least > 2 else 1, int(bounds.upper) if bounds.upper.is_Integer else None


def _multiple(symbol: str, size: Any) -> Iterator[str]:
    """``width % 4 == 0`` for ``4*s``; nothing for what is not a multiple."""
    factor, rest = size.as_coeff_Mul()
    if rest.is_Symbol and factor.is_Integer and factor > 1:
        yield f"{symbol} % {int(factor)} == 0"
