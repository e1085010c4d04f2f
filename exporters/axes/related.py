"""Which axes follow from which: guesses are taken over, groups found again, and what is not confirmed is dropped."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING

from entrepot.exporters.axes.groups import Axis, Group, settled
from entrepot.exporters.axes.ones import enlarge_ones
from entrepot.exporters.axes.relations import Relation, derived_groups, disproved
from entrepot.exporters.axes.steps import beyond_relations, multiple_relations, stepped_relations
from entrepot.exporters.axes.together import free_groups, grows_freely, shrinks

if TYPE_CHECKING:
    from entrepot.exporters.axes.probe import Prober


def may_be_related(prober: Prober, groups: Sequence[Group]) -> bool:
    """Whether there are two or more axes that do not vary, or only to some sizes, or whose sizes add up.

    One that can only grow may be read up to a multiple of the size of one that does not vary.
    """
    varying = {axis for group in groups for axis in group.axes}
    stuck = [axis for axis in prober.candidates() if axis not in varying]
    narrow = [group for group in groups if not grows_freely(prober, group)]
    sizes = {prober.size(axis) for axis in stuck}
    if len(sizes) + len(narrow) > 1 or any(group.step in sizes for group in groups) or add_up(prober, groups):
        return True
    return any(_is_multiple(prober, group, size) and not shrinks(prober, group) for group in groups for size in sizes)


def _is_multiple(prober: Prober, group: Group, size: int) -> bool:
    whole = prober.size(min(group.axes))
    return 1 < size < whole and whole % size == 0


def add_up(prober: Prober, groups: Sequence[Group]) -> bool:
    """Whether the sizes of two groups add up to that of a third in the sample.

    A batch that several inputs share is no length, and adds up to nothing.
    """
    lengths = [group for group in groups if len(group.axes) < 2 or any(axis for _, axis in group.axes)]
    sizes = [prober.sample[index].shape[axis] for index, axis in (min(group.axes) for group in lengths)]
    return any(a + b == c for a, b, c in itertools.permutations(sizes, 3) if 0 < a <= b)


def related_groups(prober: Prober, groups: list[Group]) -> list[Group]:
    """The groups with what follows from them, as far as guesses are confirmed."""
    before, enlarged = {axis for group in groups for axis in group.axes}, prober.base
    ones = {axis for axis in prober.open_axes if prober.size(axis) == 1}
    varying = before - ones  # a size of 1 meets any other
    for guesses in (_suggested_or_stepped, _multiples, _beyond, _alike_by_chance):
        prober.start_from(prober.sample)
        prober.relations = guesses(prober, groups, varying)
        if prober.relations and _without_ones(prober):  # a size of 1 often means another path
            prober.relations = _suggested(prober, groups, varying) or prober.relations
        while prober.relations:
            related = free_groups(prober)
            wrong = disproved(prober.relations, related, before, prober.sizes)
            if not wrong:
                return related
            prober.relations = [relation for relation in prober.relations if relation not in wrong]
    prober.start_from(enlarged)
    return groups


def _without_ones(prober: Prober) -> bool:
    """Whether the sizes of 1 can be enlarged, if need be without the relations that may take one for a number."""
    sizes, relations = prober.sizes, prober.relations
    enlarge_ones(prober)
    if any(prober.size(axis) == 1 for axis in prober.candidates()):
        prober.relations = [each for each in relations if each.formula.size(dict.fromkeys(each.formula.names, 0)) == 0]
        enlarge_ones(prober)
        prober.relations = relations
    return prober.sizes != sizes


def _suggested(prober: Prober, groups: Sequence[Group], varying: AbstractSet[Axis]) -> list[Relation] | None:
    """The relations that the source suggests for axes that do not vary by themselves, or cannot be captured so."""
    relations = prober.said(prober.base, [group.axes for group in groups])
    if relations is None:
        return None
    open_axes = set(prober.open_axes)
    found = []
    for relation in relations:
        axes = relation.axes & open_axes if relation.certain else (relation.axes & open_axes) - varying
        found += [replace(relation, axes=axes)] if axes else []
    return found


def _suggested_or_stepped(prober: Prober, groups: Sequence[Group], varying: AbstractSet[Axis]) -> list[Relation]:
    """What the source says, or what changing sizes in step shows, where it has nothing to say."""
    found = _suggested(prober, groups, varying)
    return _stepped(prober, groups) if found is None else found


def _stepped(prober: Prober, groups: Sequence[Group]) -> list[Relation]:
    """The relations that changing sizes in step shows, among axes that do not vary freely by themselves."""
    loose = [group for group in groups if len(group.axes) == 1 or {axis for _, axis in group.axes} == {0}]
    free = frozenset[Axis]().union(*(group.axes for group in loose if grows_freely(prober, group)))
    return stepped_relations(prober, [axis for axis in prober.candidates() if axis not in free])


def _multiples(prober: Prober, groups: Sequence[Group], _: AbstractSet[Axis]) -> list[Relation]:
    """Axes whose sizes are multiples of others: of ``view(beams, -1)``, the source says nothing.

    One that may only grow may be read at places up to a size that follows.
    """
    free = frozenset[Axis]().union(*(group.axes for group in groups if group.step == 1 and shrinks(prober, group)))
    return multiple_relations(prober, [axis for axis in prober.candidates() if axis not in free])


def _beyond(prober: Prober, groups: Sequence[Group], varying: AbstractSet[Axis]) -> list[Relation]:
    """Axes that may grow alone, and have to where others do: of ``x[length : length + 2]``, sources say nothing."""
    growing = [group for group in groups if len(group.axes) == 1 and not shrinks(prober, group)]
    stuck = [axis for axis in prober.candidates() if axis not in varying]
    return beyond_relations(prober, stuck, [axis for group in growing for axis in group.axes])


def _alike_by_chance(prober: Prober, groups: Sequence[Group], varying: AbstractSet[Axis]) -> list[Relation]:
    """What follows from several axes, if it has the size of one of them in the sample by chance.

    Patches of 4 by 4 in 16 rows: there are as many as columns, and these vary together as long as the rows stay.
    """
    tied = [group for group in groups if group.formula is None and len({axis for _, axis in group.axes}) > 1]
    stuck = {axis for axis in prober.candidates() if axis not in varying}
    if not tied or not stuck:
        return []
    open_axes = frozenset(prober.open_axes) & frozenset[Axis]().union(*(group.axes for group in tied))
    said = prober.said(prober.base, [group.axes for group in groups if group not in tied]) or ()
    return [
        replace(relation, axes=relation.axes & open_axes)
        for relation in said
        if relation.axes & open_axes and len(relation.drivers) > 1 and stuck.intersection(relation.drivers)
    ]


def tied_groups(prober: Prober, groups: Sequence[Group]) -> list[Group] | None:
    """Groups of which some follow from others, where the source says that it cannot be captured otherwise.

    Fused operators may take keys and values of different lengths, and read what is beside them.
    """
    result = list(groups)
    for relation in prober.said(prober.sample, [group.axes for group in groups]) or ():
        free = [group for group in result if group.formula is None]
        leaders = [group for group in free if not group.axes.isdisjoint(relation.drivers)]
        followers = [group for group in free if not group.axes.isdisjoint(relation.axes) and group not in leaders]
        if len(leaders) == len(relation.drivers) and followers:
            result = _tied(prober, relation, leaders, followers, result) or result
    return result if len(result) < len(groups) or any(group not in groups for group in result) else None


def _tied(
    prober: Prober, relation: Relation, leaders: list[Group], followers: list[Group], groups: list[Group]
) -> list[Group] | None:
    axes = frozenset[Axis]().union(*(group.axes for group in followers))
    relation, before = replace(relation, axes=axes), (prober.base, prober.relations)
    prober.relations = [*prober.relations, relation]
    prober.enlarge(axes, relation.size(prober.sizes) or 0)
    found = {id(group): prober.group(group.axes) for group in leaders}
    required = any(group.required for group in followers)
    if not all(found.values()) or prober.takes({}) is not None or (required and not relation.formula.is_name):
        prober.base, prober.relations = before
        prober.forget()
        return None
    for group in leaders:
        again = found[id(group)]
        assert again is not None
        group.sizes, group.step = again.sizes, again.step
        group.required = group.required or required
    rest = [group for group in groups if group not in followers]
    return settled(derived_groups([relation], rest, prober.sizes), prober.base)
