"""Axes whose size follows from those of others: ``mask = past + new``, ``b = 2 * a``, ``n = a * w``, ``rest = t // 4``.

A relation is a guess until the model has accepted two further sizes of what it depends on, with the dependent axes
following. Sources that can say what their models compute from sizes guess well; for others, whole numbers are tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from entrepot.exporters.axes.groups import Axis, Group, axis_word, word_axis
from entrepot.ir.typing.formula import Formula


@dataclass(frozen=True)
class Relation:
    """Axes that follow from others.

    Attributes:
        axes: They all have the size that the formula gives.
        formula: Over the words for axes, see ``axis_word``.
        certain: Whether the axes cannot be captured apart, though the model may accept other sizes of them.
    """

    axes: frozenset[Axis]
    formula: Formula
    certain: bool = False

    @property
    def drivers(self) -> list[Axis]:
        """The axes that it depends on."""
        return [word_axis(name) for name in self.formula.names]

    def size(self, sizes: Mapping[Axis, int]) -> int | None:
        """The size of its axes, given those of the others; ``None`` if there is no such size."""
        return self.formula.size({axis_word(axis): sizes[axis] for axis in self.drivers})


def merged(relations: Iterable[Relation]) -> list[Relation]:
    """Relations with one formula as one."""
    found: dict[Formula, Relation] = {}
    for relation in relations:
        known = found.get(relation.formula, relation)
        found[relation.formula] = Relation(known.axes | relation.axes, known.formula, known.certain or relation.certain)
    return list(found.values())


def disproved(
    relations: Iterable[Relation], groups: Sequence[Group], before: AbstractSet[Axis], size_of: Mapping[Axis, int]
) -> list[Relation]:
    """Those that no varying axis drives, that keep another from varying that did so before, or that are one number.

    ``3 + h // 8 - 4 * (h // 32)`` is 3 wherever channels go with a height: the model's condition, and no size of it.
    """
    varying = frozenset[Axis]().union(*(group.axes for group in groups))
    return [
        relation
        for relation in relations
        if varying.isdisjoint(relation.drivers)
        or (before & set(relation.drivers)) - varying
        or not _moves(relation, groups, size_of)
    ]


def _moves(relation: Relation, groups: Iterable[Group], size_of: Mapping[Axis, int]) -> bool:
    """Whether the axes take another size at any of the sizes that were seen to be accepted."""
    driving = [group for group in groups if not group.axes.isdisjoint(relation.drivers)]
    trials = ({**size_of, **dict.fromkeys(group.axes, size)} for group in driving for size in group.sizes)
    return len({relation.size(trial) for trial in trials}) > 1


def derived_groups(relations: Iterable[Relation], groups: list[Group], size_of: Mapping[Axis, int]) -> list[Group]:
    """The groups, and those of axes that follow from them; what equals an axis joins its group."""
    found = list(groups)
    for relation in relations:
        if relation.formula.is_name:
            owner = next((group for group in groups if relation.drivers[0] in group.axes), None)
            if owner is not None:
                owner.axes |= relation.axes
        else:
            size = size_of[min(relation.axes)]
            found.append(Group(relation.axes, relation.formula.text, [size], formula=relation.formula))
    return sorted(found, key=lambda group: min(group.axes))
