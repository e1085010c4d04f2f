"""Which sizes to look at, what the model says of them, and whether a graph agrees."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import onnx_ir

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.called import called
from entrepot.exporters.exporter import Source
from entrepot.exporters.paths.path import Path, Sizes
from entrepot.ir.copying import copy_graphs
from entrepot.ir.model import Model
from entrepot.parity.feeds import vary
from entrepot.parity.plan import Case
from entrepot.parity.verify import verify

_NEAR = 24
_FAR = (31, 32, 36, 37, 48, 49, 53, 64, 97, 100, 128)
"""Primes, multiples, squares and powers of two among them."""
_MOST_POINTS = 400
_FURTHER = 3
"""How many steps to look for a size of an axis beyond those that are known."""


class Trials:
    """The sizes of a model's axes.

    Args:
        source: The model.
        prober: Knows which sizes it takes.
        groups: Its axes.
        lost: The symbols whose sizes are at stake; the others keep their size, or nearly.

    Attributes:
        present: The sizes of the sample.
        points: Sizes to look at.
    """

    def __init__(self, source: Source, prober: Prober, groups: Sequence[Group], lost: Sequence[str]) -> None:
        self._source = source
        self._prober = prober
        self._groups = [group for group in groups if group.formula is None]
        self._lost = set(lost)
        self.present = self.sizes([prober.size(min(group.axes)) for group in self._groups])
        self.points = list(dict.fromkeys(self._points()))

    def _points(self) -> Iterator[tuple[int, ...]]:
        """Sizes of all groups, likely ones first: those that probing found, the sample's, small ones, large ones."""
        present = [self._prober.size(min(group.axes)) for group in self._groups]
        choices = [self._choices(group) for group in self._groups]
        found = [group.sizes[1:] if group.symbol in self._lost else [] for group in self._groups]
        for shift in range(2):
            yield tuple(
                sizes[(at + shift) % len(sizes)] if sizes else size
                for at, (sizes, size) in enumerate(zip(found, present, strict=True))
            )
        yield tuple(present)
        for shift in range(max(map(len, choices))):
            yield tuple(each[(shift + 2 * at) % len(each)] for at, each in enumerate(choices))
        for at, each in enumerate(choices):
            yield from ((*present[:at], size, *present[at + 1 :]) for size in each)
        few = [each[:6] if len(each) > 1 else each for each in choices]
        yield from itertools.islice(itertools.product(*few), _MOST_POINTS)

    def _choices(self, group: Group) -> list[int]:
        present = self._prober.size(min(group.axes))
        if group.symbol not in self._lost:
            return [present, *(size for size in group.sizes[1:2] if size > 1)]
        near = sorted(
            {*range(1, _NEAR), *range(max(1, present - 8), present + 9)}, key=lambda size: abs(size - present)
        )
        alike = [present // 2, present * 2, present * 3, present * 4]  # a module may expect one of a few
        far = [*alike, *_FAR, *(present + count * group.step for count in range(1, 9) if group.step > 1)]
        return list(dict.fromkeys(size for size in [*near, *far] if group.wants(size)))

    def elsewhere(self, path: Path, met: Collection[Sizes]) -> list[tuple[int, ...]]:
        """Points on a path with its sizes of what is at stake, and with such of the rest as nobody has looked at.

        Args:
            path: What its conditions say of the rest alone may be what is wrong; what they say of both is kept to.
            met: Sizes that are known.

        Returns:
            One at which all the rest differs, if the model takes that; else those at which one symbol does.
        """
        sides = [condition for condition in path.conditions if not condition.names.isdisjoint(self._lost)]
        kept = [group for group in self._groups if group.symbol not in self._lost]
        together, alone = dict(path.sizes), []
        for group in kept:
            symbol, known = group.symbol, {each[group.symbol] for each in (path.sizes, *met)}
            for sizes in (together, own := dict(path.sizes)):
                fits = (each for each in _others(group, known) if all(one({**sizes, symbol: each}) for one in sides))
                sizes[symbol] = next(fits, sizes[symbol])
            alone.append(own)
        if not kept or self.taken(tuple(together.values())):
            return [tuple(together.values())] if kept else []
        return [point for each in alone if self.taken(point := tuple(each.values()))]

    def sizes(self, point: Sequence[int]) -> Sizes:
        """A point by symbol."""
        return {group.symbol: size for group, size in zip(self._groups, point, strict=True)}

    def tensors(self, point: tuple[int, ...]) -> list[object]:
        """The sample at the sizes of a point."""
        return list(self._prober.resized(self._by_axis(point)))

    def taken(self, point: tuple[int, ...]) -> bool:
        """Whether the model takes these sizes."""
        return self._prober.takes(self._by_axis(point)) is None

    def wrong(
        self, graph: onnx_ir.Model, points: Sequence[tuple[int, ...]], numbers: frozenset[str]
    ) -> list[tuple[int, ...]]:
        """Those of some points where a graph, with some numbers as outputs, does not compute what the model does."""
        self._source.numbers = numbers
        model = Model(copy_graphs(graph))
        for at, value in enumerate((*model.ir.graph.inputs, *model.ir.graph.outputs)):
            value.name = f"tried_{at}"
        names = [spec.name for spec in model.inputs]
        cases = [Case(str(point), dict(zip(names, self._values(point), strict=True))) for point in points]
        report = verify(called(self._source, names, [spec.name for spec in model.outputs], ()), model, cases)
        if not report.ran:
            return list(points)
        failed = {run.label for run in report.failures}
        return [point for point in points if str(point) in failed]

    def _values(self, point: tuple[int, ...]) -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        return [vary(self._source.arrays.to_numpy(tensor), rng) for tensor in self.tensors(point)]

    def _by_axis(self, point: tuple[int, ...]) -> dict[tuple[int, int], int]:
        pairs = zip(self._groups, point, strict=True)
        sizes = {axis: size for group, size in pairs for axis in group.axes if size != self._prober.size(axis)}
        return self._prober.completed(sizes) or sizes


def _others(group: Group, known: Collection[int]) -> Iterator[int]:
    """Sizes of a group that are none of those that are known, near them, larger ones first."""
    most = group.bounds.get("max", max(known) + _FURTHER * group.step)
    larger, smaller = range(max(known) + 1, most + 1), range(max(known) - 1, 1, -1)
    yield from (size for size in itertools.chain(larger, smaller) if size not in known and group.wants(size))
