"""Sizes of 1 are enlarged: broadcasting hides what belongs together, and captures take a 1 for a constant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from entrepot.exporters.axes.groups import Axis
from entrepot.exporters.axes.subsets import subsets, without_one

if TYPE_CHECKING:
    from entrepot.exporters.axes.probe import Prober


def enlarge_ones(prober: Prober) -> None:
    """Make axes of size 1 larger, first those at one place together (a batch of one), then any others that vary."""
    ones = [axis for axis in prober.candidates() if prober.size(axis) <= 1]
    _enlarge_first(prober, without_one([axis for axis in ones if axis[1] == 0]))
    for place in sorted({axis for _, axis in ones} - {0}):
        _enlarge_first(prober, [[axis for axis in ones if axis[1] == place and prober.size(axis) <= 1]])
    for axis in ones:
        _enlarge_first(prober, [[axis]] if prober.size(axis) <= 1 else [])
    _enlarge_first(prober, subsets([axis for axis in ones if prober.size(axis) <= 1]))


def _enlarge_first(prober: Prober, choices: Iterable[list[Axis]]) -> None:
    """Enlarge the axes of the first choice that the model accepts."""
    size = prober.fresh_sizes(1)[0]
    for axes in choices:
        if axes and prober.takes(dict.fromkeys(axes, size)) is None:
            prober.enlarge(axes, size)
            return
