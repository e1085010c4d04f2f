"""Axes each of which varies alone, while together they change the structure of the results.

``zip`` ends with the shortest: a list with an entry for each row of two tensors stays as long as it is until both grow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.exporter import StructureRefusal

if TYPE_CHECKING:
    from entrepot.exporters.axes.probe import Prober


def without_clashing(prober: Prober, groups: list[Group]) -> tuple[list[Group], dict[Axis, StructureRefusal]]:
    """The groups that may all vary at once, and why the axes of the others are left out."""
    clashes: dict[Axis, StructureRefusal] = {}
    while refusal := _clash(prober, groups):
        guilty = groups
        for group in groups:
            rest = [other for other in guilty if other is not group]
            guilty = rest if _clash(prober, rest) else guilty
        clashes |= {axis: refusal for group in guilty for axis in group.axes}
        groups = [group for group in groups if group not in guilty]
    return groups, clashes


def _clash(prober: Prober, groups: Sequence[Group]) -> StructureRefusal | None:
    """How the model refuses that all groups grow a little."""
    sizes: dict[Axis, int] = {}
    for group in groups:
        larger = [size for size in group.sizes if size > prober.size(min(group.axes))]
        sizes |= dict.fromkeys(group.axes, min(larger)) if larger else {}
    refusal = prober.takes(sizes) if sizes else None
    return refusal if isinstance(refusal, StructureRefusal) else None
