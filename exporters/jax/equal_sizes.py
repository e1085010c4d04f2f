"""Sizes that JAX took for different ones because it could not know: a graph is tried where they are the same."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import onnx_ir

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.jax.dims import evaluated, names_in
from entrepot.exporters.jax.ranges import Range, Ranges, size_of, steps_in, symbols_of
from entrepot.exporters.jax.upstream import EQUAL, Comparison
from entrepot.exporters.paths.trying import Trials

if TYPE_CHECKING:
    from entrepot.exporters.jax.source import JaxSource

_LARGEST = 512
_MOST_POINTS = 4
_PAIRED = 16
"""Up to which two sizes are tried together."""


class Sameness:
    """What a graph does where sizes are the same that were taken for different ones.

    Args:
        source: The model.
        prober: Knows which sizes it takes.
        groups: The axes that vary.
        ranges: The sizes within which the graph is to hold.
    """

    def __init__(self, source: JaxSource, prober: Prober, groups: Sequence[Group], ranges: Ranges) -> None:
        self._source, self._prober, self._groups, self._ranges = source, prober, groups, ranges
        self._symbols = symbols_of(groups)

    def contradicted(
        self, graph: onnx_ir.Model, numbers: frozenset[str], pairs: Sequence[tuple[str, str]]
    ) -> list[Comparison]:
        """Which of some pairs, at sizes where both are the same, make the model compute something else."""
        trials = Trials(self._source, self._prober, self._groups, list(self._symbols))
        found = []
        for left, right in pairs:
            if not names_in(left) | names_in(right) <= self._symbols.keys():
                continue
            taken = (point for point in self._points(left, right) if trials.taken(point))
            points = list(itertools.islice(taken, _MOST_POINTS))
            if points and trials.wrong(graph, points, numbers):
                found.append(Comparison(left, EQUAL, right))
        return found

    def _points(self, left: str, right: str) -> Iterator[tuple[int, ...]]:
        """Sizes of all groups at which two expressions are the same."""
        present = {name: steps_in(group, self._prober.size(min(group.axes))) for name, group in self._symbols.items()}
        moved = {name: steps_in(group, group.sizes[-1]) for name, group in self._symbols.items() if group.sizes}
        names = sorted(names_in(left) | names_in(right))
        most = _LARGEST if len(names) == 1 else _PAIRED
        choices = [self._choices(name, most) for name in names[:2]]
        for chosen, other in itertools.product(itertools.product(*choices), (present, {**present, **moved})):
            steps = {**other, **dict(zip(names, chosen, strict=False))}
            if _are_same(left, right, steps):
                yield tuple(size_of(group, steps[name]) for name, group in self._symbols.items())

    def _choices(self, name: str, most: int) -> list[int]:
        least, last, _ = self._ranges.get(name, Range(1))
        group = self._symbols[name]
        steps = range(max(1, least), 1 + (most if last is None else min(most, last)))
        return [each for each in steps if group.wants(size_of(group, each))]


def _are_same(left: str, right: str, sizes: Mapping[str, int]) -> bool:
    return evaluated(left, sizes) == evaluated(right, sizes)
