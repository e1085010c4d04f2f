"""Sizes of several axes at once at which a capture need not hold: conditions such as ``rows * columns % 8 == 0``.

torch.export (2.13) notes them without a word where sizes were left to it, and a change of one axis may keep to them.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import torch

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.options import Options
from entrepot.exporters.torch.capture.automatic import terms_of
from entrepot.exporters.torch.capture.flat import Capture
from entrepot.exporters.torch.upstream import size_notes
from entrepot.ir.typing.arithmetic import value_of

_TRIED = 3
"""How many sizes the module is tried at for each condition: it may refuse what does not keep to it."""
_COMMON = 6
"""A divisor that many sizes have in common, with divisors of its own."""
_COMBINED = 1000
"""How many combinations of sizes are looked at for each condition."""
_MOST = 4
"""Conditions of more axes are left to the proof, which changes all of them once."""


def sizes_against(captured: Capture, prober: Prober, options: Options) -> list[Mapping[str, int]]:
    """Sizes at which a condition on several axes does not hold, but which the module takes: there, it has to be proved.

    Args:
        captured: The program and its axes.
        prober: Knows what the module takes.
        options: Say whether there will be a proof.

    Returns:
        Sizes by the symbols of groups; together they are against every condition that can be broken like that.
    """
    if not options.verify:
        return []
    notes, axes = size_notes(captured.program), _by_symbol(captured.program, captured.groups)
    present = {str(symbol): int(size) for symbol, size in notes.sizes.items()}
    found: list[Mapping[str, int]] = []
    for guard in notes.guards:
        condition = guard.condition.xreplace(notes.replaced)
        symbols = sorted(map(str, condition.free_symbols))
        if not 1 < len(symbols) <= _MOST or not axes.keys() >= {*symbols}:
            continue
        tree = ast.parse(str(condition), mode="eval").body
        if any(_is_broken(tree, {**present, **sizes}) for sizes in found):
            continue
        against = itertools.islice(_against(tree, symbols, axes), _TRIED)
        found += itertools.islice((sizes for sizes in against if _are_taken(_in_groups(sizes, axes), prober)), 1)
    return [{group.symbol: size for group, size in _in_groups(sizes, axes)} for sizes in found]


def longer_ways(
    steps: Callable[[Sequence[torch.Tensor]], int], groups: Sequence[Group], prober: Prober
) -> list[Mapping[str, int]]:
    """Sizes of axes that are mostly 1 at which the module takes more steps: its loops over pieces turn again there.

    Args:
        steps: How many the module takes.
        groups: Its axes.
        prober: Knows what the module takes.
    """
    found: list[Mapping[str, int]] = []
    for group in (group for group in groups if group.often_one):
        usual, sizes = steps(prober.base), (size for size in _BEYOND_A_PIECE if size > max(group.sizes))
        taken = (size for size in sizes if _are_taken([(group, size)], prober))
        more = (size for size in taken if steps(prober.resized(dict.fromkeys(group.axes, size))) > usual)
        found += [{group.symbol: size} for size in itertools.islice(more, 1)]
    return found


_BEYOND_A_PIECE = (9, 17, 33, 65, 129, 257, 513)
"""Pieces have sizes that are powers of two, most of the time."""


def sizes_of_kinds(groups: Sequence[Group], prober: Prober, options: Options) -> list[Mapping[str, int]]:
    """Sizes for which Python may compute other numbers than for most: all alike, with divisors in common, in any order.

    A trace, and captures that were put together, say nothing of what Python made of sizes: ``math.gcd(rows, columns)``
    is 1 for most.

    Args:
        groups: Their axes.
        prober: Knows what the module takes.
        options: Say whether there will be a proof.
    """
    free = [group for group in groups if group.formula is None]
    if not options.verify or len(free) < 2:
        return []
    rising = [_COMMON * (at + 1) for at in range(len(free))]
    kinds = ([2 * _COMMON] * len(free), rising, rising[::-1])
    found = [[_wanted(group, size) for group, size in zip(free, sizes, strict=True)] for sizes in kinds]
    taken = (sizes for sizes in found if _are_taken(zip(free, sizes, strict=True), prober))
    return [{group.symbol: size for group, size in zip(free, sizes, strict=True)} for sizes in taken]


def _wanted(group: Group, least: int) -> int:
    """The smallest size that a group wants, from some size on; the present one if there is none."""
    most = min(least + 2 * group.step, group.bounds.get("max", least + 2 * group.step))
    return next((size for size in range(least, most + 1) if group.wants(size)), group.sizes[0])


def _by_symbol(program: torch.export.ExportedProgram, groups: Sequence[Group]) -> dict[str, tuple[Group, int]]:
    """The groups whose sizes are a symbol of a program, or always the same multiple of one."""
    found: dict[str, tuple[Group, int]] = {}
    for group in (group for group in groups if group.formula is None):
        terms = terms_of(program, group) or ()
        if len(terms) == 1:
            times, symbol = next(iter(terms)).as_coeff_Mul()
            found[str(symbol)] = group, int(times)
    return found


def _in_groups(sizes: Mapping[str, int], axes: Mapping[str, tuple[Group, int]]) -> list[tuple[Group, int]]:
    """Values of symbols as sizes of groups."""
    return [(axes[symbol][0], axes[symbol][1] * size) for symbol, size in sizes.items()]


def _against(
    condition: ast.expr, symbols: Sequence[str], axes: Mapping[str, tuple[Group, int]]
) -> Iterator[Mapping[str, int]]:
    """Values of symbols that break a condition, the nearest first."""
    present = [axes[symbol][0].sizes[0] for symbol in symbols]
    choices = [
        [size // times for size in _sizes(group, present) if not size % times]
        for group, times in (axes[symbol] for symbol in symbols)
    ]
    nearest = sorted(itertools.product(*map(range, map(len, choices))), key=sum)
    for places in nearest[:_COMBINED]:
        sizes = {symbol: found[at] for symbol, found, at in zip(symbols, choices, places, strict=True)}
        if _is_broken(condition, sizes):
            yield sizes


def _sizes(group: Group, others: Sequence[int]) -> list[int]:
    """Sizes of a group that it wants and its capture holds for: near the present one, then near those of others."""
    present, least, most = group.sizes[0], group.bounds["min"], group.bounds.get("max")
    near = (present + times * group.step for times in (0, 1, 2, 3, 5, 7))
    steps = (0, group.step, -group.step)
    like = (size + more for other in others for size in (other, 2 * other, other // 2) for more in steps)
    sizes = dict.fromkeys((*near, *group.sizes[1:], *like))
    return [size for size in sizes if group.wants(size) and size >= least and (most is None or size <= most)]


def _is_broken(condition: ast.expr, sizes: Mapping[str, int]) -> bool:
    """Whether a condition does not hold at some sizes; one that is not understood does."""
    try:
        return not value_of(condition, sizes)
    except (ValueError, TypeError, KeyError, ArithmeticError):  # the module divides by zero there, too
        return False


def _are_taken(sizes: Iterable[tuple[Group, int]], prober: Prober) -> bool:
    """Whether the module takes some groups of axes at some sizes."""
    return prober.takes({axis: size for group, size in sizes for axis in group.axes}) is None
