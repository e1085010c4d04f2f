"""Conditions that torch.export puts on axes without being able to prove them: tried on sizes instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch

from entrepot.exporters.axes.groups import AMPLE, Group
from entrepot.exporters.torch.upstream import SizeNotes, size_notes


@dataclass(frozen=True)
class Broken:
    """Why a captured graph does not hold for all sizes of a group.

    Attributes:
        reason: In words.
        shared: Whether it depends on other sizes, too.
    """

    reason: str
    shared: bool = False


def broken_condition(program: torch.export.ExportedProgram, group: Group) -> Broken | None:
    """Why a captured graph does not hold for all sizes of a group whose conditions were left to torch.export.

    Args:
        program: Captured with the axes of ``group`` as ``Dim.AUTO``.
        group: Its bounds say for which sizes the conditions have to hold.
    """
    symbols = symbols_of(program, group)
    if symbols is None:
        return Broken("forward turns it into a constant")
    notes, known = size_notes(program), _known(program)
    for guard in notes.guards:
        mine = guard.condition.free_symbols & symbols
        if (
            mine
            and guard.condition.free_symbols <= known
            and not all(_holds(notes, guard.condition, mine, size) for size in _sizes(group, guard.condition))
        ):
            return Broken(f"the capture needs {guard.condition}", shared=bool(guard.condition.free_symbols - mine))
    return None


def pinning_condition(program: torch.export.ExportedProgram, group: Group) -> Broken | None:
    """Why a captured graph holds for one size of a group alone, whose sizes go in steps: torch leaves that unsaid."""
    symbols = symbols_of(program, group)
    if symbols is None:
        return Broken("forward turns it into a constant")
    notes, known = size_notes(program), _known(program)
    for guard in notes.guards:
        condition = guard.condition.xreplace(notes.replaced)
        mine = condition.free_symbols & symbols
        if mine and condition.free_symbols <= known:
            present = {notes.sizes.get(symbol) for symbol in mine}
            counts = (size // group.step for size in _sizes(group, condition))
            if not any(_holds(notes, condition, mine, count) for count in counts if count not in present):
                return Broken(f"the capture needs {condition}", shared=bool(condition.free_symbols - mine))
    return None


def _known(program: torch.export.ExportedProgram) -> set[Any]:
    """The symbols that sizes of inputs still have; what another follows from was put in its place."""
    values = [node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"]
    sizes: list[Any] = [size for value in values if isinstance(value, torch.Tensor) for size in value.shape]
    return set().union(*(size.node.expr.free_symbols for size in sizes if isinstance(size, torch.SymInt)))


def symbols_of(program: torch.export.ExportedProgram, group: Group) -> set[Any] | None:
    """The symbols in the sizes of a group in a captured graph; ``None`` if one of them is a number."""
    terms = terms_of(program, group)
    return None if terms is None else set().union(*(term.free_symbols for term in terms))


def terms_of(program: torch.export.ExportedProgram, group: Group) -> set[Any] | None:
    """The sizes of a group in a captured graph; ``None`` if one of them is a number."""
    users = set(program.graph_signature.user_inputs)
    values = [node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder" and node.name in users]
    sizes = [values[index].shape[axis] for index, axis in group.axes]
    if not all(isinstance(size, torch.SymInt) for size in sizes):
        return None
    return {size.node.expr for size in sizes}


def joint_limits(program: torch.export.ExportedProgram, groups: Sequence[Group]) -> list[str]:
    """Where several axes together end, as conditions over the symbols of groups that may be bounded."""
    notes, terms = size_notes(program), dict[Any, Any]()
    for group in (group for group in groups if group.bounded and group.formula is None):
        terms |= {term: sympy.Symbol(group.symbol, integer=True) for term in symbols_of(program, group) or ()}
    conditions = [guard.condition for guard in notes.guards if isinstance(guard.condition, _ENDS)]
    shared = (each for each in conditions if len(each.free_symbols) > 1 and each.free_symbols <= terms.keys())
    broken = (each for each in shared if not _holds(notes, each, each.free_symbols, 2**20))
    return list(dict.fromkeys(str(each.xreplace(terms)) for each in broken))


_ENDS = (sympy.Le, sympy.Ge, sympy.Lt, sympy.Gt)


_EVEN = frozenset(
    ("FloorDiv", "CleanDiv", "Mod", "PythonMod", "Max", "Min", "IntTrueDiv", "ToFloat", "CeilToInt", "FloorToInt")
)
"""Functions that go on as they go from one size to the next few; roots and logarithms are whole at ever fewer."""

_SINGULAR = sorted({2**power for power in range(31)} | {root**2 for root in range(1, 40)})


def _sizes(group: Group, condition: Any) -> Iterator[int]:
    far = AMPLE * group.sizes[0] if group.bounded and isinstance(condition, _ENDS) else 2**20
    least, most = group.bounds["min"], group.bounds.get("max", far)
    candidates: Sequence[int] = [*range(least, least + 40), *(least * 2**power + 1 for power in range(20))]
    if any(type(each).__name__ not in _EVEN for each in condition.atoms(sympy.Function)):
        candidates = [*candidates, *(size for size in _SINGULAR if size >= least)]
    steps = (group.step * size + group.remainder if group.step > 1 else size for size in candidates)
    return (size for size in steps if size <= most)


def _holds(notes: SizeNotes, condition: Any, mine: set[Any], size: int) -> bool:
    others = {symbol: sympy.Integer(notes.sizes.get(symbol, 2)) for symbol in condition.free_symbols - mine}
    try:
        return bool(condition.xreplace(others | dict.fromkeys(mine, sympy.Integer(size))))
    except ZeroDivisionError:  # as the module does there: it takes no such size
        return True
