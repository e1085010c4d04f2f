"""Which axes vary together: those that have to, those that lead others, and those that only the graph ties."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.axes.subsets import minimal, subsets

if TYPE_CHECKING:
    from entrepot.exporters.axes.probe import Prober


def free_groups(prober: Prober) -> list[Group]:
    """The groups of axes that vary, with those that follow from them following."""
    found = {axis: prober.group([axis]) for axis in prober.candidates()}
    alone = {axis: group for axis, group in found.items() if group is not None}
    growing = [axis for axis, group in alone.items() if max(group.sizes) > prober.size(axis)]
    groups = _in_step(prober, alone)
    settled = {axis for group in groups for axis in group.axes}
    rest = [axis for axis in prober.candidates() if axis not in growing and axis not in settled]
    for size, members in _by_size(prober, rest).items():
        linked = _linked(prober, [axis for axis in members if axis not in alone])
        bound = {axis for group in linked for axis in group.axes}
        tolerant = [axis for axis in growing if prober.size(axis) == size]
        led = _led(prober, [axis for axis in members if axis not in bound], tolerant)
        bound |= {axis for group in led for axis in group.axes}
        together = _joined(prober, [axis for axis in members if axis not in bound], linked + led)
        groups += together
        for axis in frozenset[Axis]().union(*(group.axes for group in together)):
            alone.pop(axis, None)
    return sorted([*groups, *alone.values()], key=lambda group: min(group.axes))


def bound_groups(prober: Prober, group: Group, groups: Sequence[Group], *, alike: bool = False) -> list[Group] | None:
    """Groups in which ``group`` varies with others that now have its size, if the model accepts that.

    A model that skips a mask of ones accepts one of any batch size; its graph does not. Those at the same place of
    other tensors come first: as many heads as rows in a batch are an accident.

    Args:
        prober: Knows what the model accepts.
        group: What is not to vary alone.
        groups: All of them.
        alike: Whether none but those at the same place will do.
    """
    size = prober.size(min(group.axes))
    free = [other for other in groups if other is not group and other.formula is None]
    others = [other for other in free if prober.size(min(other.axes)) == size]
    near = [other for other in others if not _places(other).isdisjoint(_places(group))]
    if group.formula is not None:
        return None
    bound = _bound(prober, group, near, groups) if near else None
    return bound if bound or alike or len(near) == len(others) else _bound(prober, group, others, groups)


def _bound(prober: Prober, group: Group, others: Sequence[Group], groups: Sequence[Group]) -> list[Group] | None:
    axes = group.axes.union(*(other.axes for other in others))
    first = min([group, *others], key=lambda each: min(each.axes))
    together = prober.group(axes, first.symbol, required=any(each.required for each in (group, *others)))
    if together is None:
        return None
    together.automatic = any(each.automatic for each in (group, *others))
    together.bounds |= {"max": min(most)} if (most := [*filter(None, map(_most, (group, *others)))]) else {}
    return [together if each is first else each for each in groups if each is first or each not in (group, *others)]


def _places(group: Group) -> set[int]:
    return {axis for _, axis in group.axes}


def tied_axes(bound: Sequence[Group], groups: Sequence[Group]) -> set[Axis]:
    """Axes of one tensor that ``bound_groups`` made vary together: height and width, unlike the rows of two tensors."""
    before = {axis: group for group in groups for axis in group.axes}
    return {
        axis
        for group in bound
        for axis, other in itertools.permutations(group.axes, 2)
        if axis[0] == other[0] and before[axis] is not before[other]
    }


def grows_freely(prober: Prober, group: Group) -> bool:
    """Whether the model accepts every larger size that is tried."""
    larger = [size for size in prober.fresh_sizes(group.sizes[0], step=group.step) if size > group.sizes[0]]
    return all(prober.takes(dict.fromkeys(group.axes, size)) is None for size in larger)


def shrinks(prober: Prober, group: Group) -> bool:
    """Whether the model accepts every smaller size that is tried."""
    smaller = [size for size in prober.fresh_sizes(group.sizes[0], step=group.step) if size < group.sizes[0]]
    return all(prober.takes(dict.fromkeys(group.axes, size)) is None for size in smaller)


def _in_step(prober: Prober, alone: dict[Axis, Group]) -> list[Group]:
    """Groups of axes that take some sizes alone, and all of them only together; they are taken out of ``alone``.

    The root of a number of tokens is a whole number for some heights beside a width, and for every square.
    """
    narrow = [axis for axis, group in alone.items() if not grows_freely(prober, group)]
    groups: list[Group] = []
    for members in _by_size(prober, narrow).values():
        left = members
        while together := next((axes for axes in subsets(left) if _all_grow(prober, axes)), None):
            groups += filter(None, [prober.group(together)])
            left = [axis for axis in left if axis not in together]
            for axis in together:
                alone.pop(axis)
    return groups


def _all_grow(prober: Prober, axes: list[Axis]) -> bool:
    group = prober.group(axes)
    return group is not None and grows_freely(prober, group)


def _by_size(prober: Prober, axes: Iterable[Axis]) -> dict[int, list[Axis]]:
    found: dict[int, list[Axis]] = {}
    for axis in axes:
        found.setdefault(prober.size(axis), []).append(axis)
    return found


def _linked(prober: Prober, members: list[Axis]) -> list[Group]:
    """Split axes of one size, none of which varies alone, into minimal groups that vary together."""
    groups: list[Group] = []
    while together := next((axes for axes in subsets(members) if prober.other_sizes(axes)), None):
        kept = minimal(together, lambda axes: bool(prober.other_sizes(axes)))
        groups += filter(None, [prober.group(kept)])
        members = [axis for axis in members if axis not in kept]
    return groups


def _led(prober: Prober, stuck: list[Axis], tolerant: list[Axis]) -> list[Group]:
    """Groups of axes that can grow only together with others, while those may also grow alone.

    Some accept a mask with more rows than there are ids, and read the first ones; then there may also be
    fewer ids, and yet the two belong together. Others accept a mask with fewer, and pad it.
    """
    groups: list[Group] = []
    while stuck and (tolerant or len(stuck) > 1):
        choices = [*subsets(stuck), *([axis] for axis in stuck)]
        together = next((axes for axes in choices if _grows(prober, stuck, [*axes, *tolerant])), None)
        if together is None:
            break
        needed = _needed(prober, stuck, together, tolerant)
        groups += filter(None, [prober.group(needed)])
        stuck = [axis for axis in stuck if axis not in needed]
        tolerant = [axis for axis in tolerant if axis not in needed]
    return groups


def _needed(prober: Prober, stuck: list[Axis], together: list[Axis], tolerant: list[Axis]) -> list[Axis]:
    """As few of some axes as can grow together: of a square, height and width need not."""
    positions = {axis for _, axis in together}
    likeliest_last = sorted(tolerant, key=lambda axis: axis[1] in positions)  # what comes first is dropped first
    needed = minimal([*likeliest_last, *together], functools.partial(_grows, prober, stuck))
    left = [axis for axis in together if axis in needed]
    if len(left) == len(together):
        return needed
    return _needed(prober, stuck, left, [axis for axis in tolerant if axis in needed])


def _joined(prober: Prober, stuck: list[Axis], groups: list[Group]) -> list[Group]:
    """Groups with the axes that can grow only with all of one: others may grow without them, who read the rest."""
    for axis in stuck:
        for at, group in enumerate(groups):
            larger = [axis, *group.axes]
            if _grows(prober, [axis], larger) and (joined := prober.group(larger)) is not None:
                groups[at] = joined
                break
    return groups


def _grows(prober: Prober, stuck: list[Axis], axes: list[Axis]) -> bool:
    """Whether axes, some of which cannot vary without the others, accept a larger size together."""
    return any(axis in stuck for axis in axes) and max(prober.other_sizes(axes), default=0) > prober.size(axes[0])


def _most(group: Group) -> int | None:
    return group.bounds.get("max")
