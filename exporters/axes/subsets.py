"""Which axes may belong together: choices to try, the likeliest first."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from entrepot.exporters.axes.groups import Axis

_MOST_PAIRED = 12  # how many axes of one size may be tried in pairs; each trial runs the model


def subsets(axes: list[Axis]) -> Iterator[list[Axis]]:
    """Sets of two or more axes that may belong together, the likeliest first."""
    for position in dict.fromkeys(axis for _, axis in axes):
        same = [axis for axis in axes if axis[1] == position]
        if 1 < len(same) < len(axes):  # a batch that is as large as the number of heads, or of rows in a table of sizes
            yield from (choice for choice in without_one(same) if len(choice) > 1)
    yield from (choice for choice in without_one(axes) if len(choice) > 1)
    yield from (list(pair) for pair in itertools.combinations(axes, 2) if 3 < len(axes) <= _MOST_PAIRED)


def without_one(axes: list[Axis]) -> Iterator[list[Axis]]:
    """All axes, then all but one: a size that is equal by accident must not hide a group."""
    yield axes
    if len(axes) <= _MOST_PAIRED:
        yield from ([other for other in axes if other != axis] for axis in axes)


def minimal(axes: list[Axis], passes: Callable[[list[Axis]], bool]) -> list[Axis]:
    """Drop every axis that the rest can vary without."""
    kept = list(axes)
    for axis in axes:
        rest = [other for other in kept if other != axis]
        if rest and passes(rest):
            kept = rest
    return kept
