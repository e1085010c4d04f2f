"""Sizes within which a trace holds: what JAX cannot decide for every size is decided as for the sample.

A table of positions ends somewhere, and so does what reads it. Where the model does not refuse what lies beyond a range
but does something else there, the graph checks that sizes are within it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.jax.dims import evaluated, names_in, steps_of
from entrepot.exporters.jax.upstream import EQUAL, Comparison


class Range(NamedTuple):
    """The sizes of a symbol of JAX's within which a trace holds.

    Attributes:
        least: The smallest.
        most: The largest; ``None`` where there is no end.
        checked: Whether the graph has to refuse what lies beyond, since the model does not.
    """

    least: int
    most: int | None = None
    checked: bool = False

    def within(self, other: Range) -> Range:
        """What both contain."""
        ends = [each.most for each in (self, other) if each.most is not None]
        return Range(max(self.least, other.least), min(ends, default=None), self.checked or other.checked)


Ranges = Mapping[str, Range]

FROM_TWO = Range(2)
"""What JAX says of all sizes is often only so from 2 on; traces of those are tried at 1, and not held to it."""


def constraints(ranges: Ranges) -> list[str]:
    """Ranges as JAX states them."""
    least = [f"{symbol} >= {each.least}" for symbol, each in ranges.items()]
    return least + [f"{symbol} <= {each.most}" for symbol, each in ranges.items() if each.most is not None]


def narrowed(
    ranges: Ranges, compared: Sequence[Comparison], groups: Sequence[Group], prober: Prober, within: Ranges
) -> Ranges | None:
    """Ranges in which one of some comparisons is as it is for the sample; ``None`` where none of them is of use.

    One that the model itself keeps to is preferred. Sizes of the sample that are not within a box are those next to it.
    """
    other: Ranges | None = None
    steps = inside(within, groups, prober)
    for symbol, group in symbols_of(groups).items():
        present = steps[symbol]
        for comparison in compared:
            known, found = ranges.get(symbol, Range(0)), _range(comparison, symbol, present)
            if found is None or found.within(known) == known:
                continue
            ends = all(_refused(prober, group, steps) for steps in _outside(found))
            narrower = {**ranges, symbol: found._replace(checked=not ends).within(known)}
            if ends:
                return narrower
            other = other or narrower
    return other


def restrict(groups: Sequence[Group], ranges: Ranges) -> None:
    """Let groups have no sizes but those in which a trace holds; those from 2 on are not held to that."""
    for symbol, group in symbols_of(groups).items():
        least, most, _ = ranges.get(symbol, Range(0))
        first, last = group.asked
        if least > 2:
            first = max(first, size_of(group, least))
        if most is not None:
            last = size_of(group, most) if last is None else min(last, size_of(group, most))
        group.asked = first, last


def conditions(groups: Sequence[Group], ranges: Ranges) -> list[str]:
    """What the graph has to check, over the symbols of groups."""
    found = []
    for symbol, group in symbols_of(groups).items():
        least, most, checked = ranges.get(symbol, Range(0))
        if checked and least > 2:
            found.append(f"{group.symbol} >= {size_of(group, least)}")
        if checked and most is not None:
            found.append(f"{group.symbol} <= {size_of(group, most)}")
    return found


def symbols_of(groups: Sequence[Group]) -> dict[str, Group]:
    """Groups by the symbols that JAX has for them."""
    free = [group for group in groups if group.formula is None]
    return {group.symbol if group.step == 1 else steps_of(group): group for group in free}


def steps_in(group: Group, size: int) -> int:
    """What the symbol of a group is at a size."""
    return (size - group.remainder) // group.step if group.step > 1 else size


def size_of(group: Group, steps: int) -> int:
    """What the size is where the symbol is a number."""
    return steps * group.step + group.remainder if group.step > 1 else steps


def inside(ranges: Ranges, groups: Sequence[Group], prober: Prober) -> dict[str, int]:
    """What the symbols are for the sample, or as near to it as ranges allow."""
    found = {}
    for symbol, group in symbols_of(groups).items():
        least, most, _ = ranges.get(symbol, Range(0))
        present = max(least, steps_in(group, prober.size(min(group.axes))))
        found[symbol] = present if most is None else min(present, most)
    return found


def bounds_of(group: Group, found: Range) -> Iterator[str]:
    """A range in words, over the symbol of a group."""
    least, most, _ = found
    if least > 1:
        yield f"{group.symbol} >= {size_of(group, least)}"
    if most is not None:
        yield f"{group.symbol} <= {size_of(group, most)}"


def only_size(group: Group, found: Range | None) -> int | None:
    """The size of a group in a range of one."""
    return size_of(group, found.least) if found is not None and found.least == found.most else None


def accepted(prober: Prober, group: Group, found: Range) -> bool:
    """Whether the model takes the sizes at the ends of a range."""
    return not any(_refused(prober, group, steps) for steps in (found.least, found.most) if steps)


def _outside(found: Range) -> list[int]:
    """What is next to a range and not in it."""
    below = [found.least - 1] if found.least > 0 else []
    return below + ([] if found.most is None else [found.most + 1])


def _refused(prober: Prober, group: Group, steps: int) -> bool:
    return prober.takes(dict.fromkeys(group.axes, size_of(group, steps))) is not None


def _range(comparison: Comparison, symbol: str, present: int) -> Range | None:
    """Where a comparison of expressions that grow evenly with one symbol is as it is for the sample."""
    left, operator, right = comparison
    if names_in(left) | names_in(right) != {symbol}:
        return None
    gaps = [_difference(left, right, {symbol: present + more}) for more in range(3)]
    slope = gaps[1] - gaps[0]
    if not slope or gaps[2] - gaps[1] != slope or (operator == EQUAL and not gaps[0]):
        return None
    if operator == EQUAL:
        operator = ">" if gaps[0] > 0 else "<"
    holds, (least, most) = _OPERATORS[operator](gaps[0]), _GAPS[operator]
    limit, upper = (most, True) if holds and most is not None else (least, False)
    if not holds:
        limit, upper = (most + 1, False) if most is not None else (least - 1, True)
    steps = (limit - gaps[0]) / slope
    return Range(0, present + math.floor(steps)) if upper == (slope > 0) else Range(present + math.ceil(steps))


def _difference(left: str, right: str, sizes: Mapping[str, int]) -> int:
    return evaluated(left, sizes) - evaluated(right, sizes)


_OPERATORS: dict[str, Callable[[int], bool]] = {
    "<=": lambda gap: gap <= 0,
    "<": lambda gap: gap < 0,
    ">=": lambda gap: gap >= 0,
    ">": lambda gap: gap > 0,
}
_GAPS: dict[str, Any] = {"<=": (None, 0), "<": (None, -1), ">=": (0, None), ">": (1, None)}
"""The least and the greatest difference at which each holds."""
