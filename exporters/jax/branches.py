"""Sizes at which a model goes another way than at those of the sample: each way is traced, and an If asks for the size.

JAX decides a comparison of sizes while it traces, and a trace holds only where it comes out the same. What is beyond is
traced as well, in boxes of sizes, until all are covered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import onnx_ir as ir

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.jax.ranges import (
    FROM_TWO,
    Range,
    Ranges,
    accepted,
    bounds_of,
    inside,
    size_of,
    steps_in,
    symbols_of,
)
from entrepot.exporters.paths.expression import Expression
from entrepot.exporters.paths.joining import joined
from entrepot.exporters.paths.path import Path
from entrepot.exporters.paths.trying import Trials

if TYPE_CHECKING:
    from entrepot.exporters.jax.source import JaxSource

_MOST = 6
"""How many ways are traced before they are left alone."""


class Traced(NamedTuple):
    """A graph, which of its outputs are numbers that depend on sizes, and the sizes within which it holds."""

    graph: ir.Model
    numbers: frozenset[str]
    ranges: Ranges


Trace = Callable[[Ranges], "Traced | None"]
"""A graph for a part of a box of sizes, from the least of it on; ``None`` where there is none."""


class Branches:
    """Puts traces together.

    Args:
        source: The model.
        prober: Knows which sizes it takes.
        groups: The axes that vary.
        trace: Makes a graph.
        weights: The names of weights, which are the same in every trace.
    """

    def __init__(
        self, source: JaxSource, prober: Prober, groups: Sequence[Group], trace: Trace, weights: frozenset[str]
    ) -> None:
        self._prober, self._groups, self._trace, self._weights = prober, groups, trace, weights
        self._symbols = symbols_of(groups)
        self._trials = Trials(source, prober, groups, [group.symbol for group in self._symbols.values()])

    def joined(self, first: Traced) -> Traced | None:
        """One graph for all sizes that the model takes; ``None`` if there is none."""
        every: Ranges = {symbol: Range(1) for symbol in self._symbols}
        found = [self._from_one(every, first)]
        if not (boxes := list(self._beyond(every, found[0]))):
            return None
        while boxes:
            box = boxes.pop()
            other = self._trace(box) if len(found) < _MOST else None
            if other is None or not are_alike(first, other):
                return None
            found.append(self._from_one(box, other))
            boxes += self._beyond(box, found[-1])
        graph = joined([self._path(each) for each in found], [self._holding(each) for each in found[:-1]], self._groups)
        points = [point for each in found for point in self._points(each.ranges)]
        return None if self._trials.wrong(graph, points, first.numbers) else Traced(graph, first.numbers, {})

    def _beyond(self, outer: Ranges, found: Traced) -> Iterator[Ranges]:
        """What a box contains of sizes that the model takes, beside those in which a trace holds; in boxes, too."""
        rest = dict(outer)
        for symbol, group in self._symbols.items():
            (least, most, _), whole = found.ranges[symbol], outer[symbol]
            below, above = Range(whole.least, least - 1), Range((most or 0) + 1, whole.most)
            for part, missing in ((below, least > whole.least), (above, most is not None and most != whole.most)):
                if missing and accepted(self._prober, group, part):
                    yield {**rest, symbol: part}
            rest[symbol] = Range(max(least, whole.least), whole.most if most is None else most)

    def _from_one(self, outer: Ranges, found: Traced) -> Traced:
        """A trace of sizes from 2 on as one from 1 on, where it does what the model does there."""
        ranges = {symbol: found.ranges.get(symbol, Range(1)) for symbol in self._symbols}
        for symbol, (least, most, _) in ranges.items():
            if least == FROM_TWO.least > outer[symbol].least and self._follows(found, symbol):
                ranges[symbol] = Range(1, most)
        return found._replace(ranges=ranges)

    def _follows(self, found: Traced, symbol: str) -> bool:
        """Whether a trace of sizes from 2 on does what the model does at size 1."""
        ones = [point for point in self._points({**found.ranges, symbol: Range(1, 1)}) if self._trials.taken(point)]
        return not ones or not self._trials.wrong(found.graph, ones, found.numbers)

    def _points(self, ranges: Ranges) -> list[tuple[int, ...]]:
        """Sizes at both ends of a box that the model takes, and next to them."""
        present = inside(ranges, self._groups, self._prober)
        found = [present]
        for symbol in self._symbols:
            least, most, _ = ranges[symbol]
            ends = {least, least + 1, present[symbol] + 1, *(() if most is None else (most, max(most - 1, least)))}
            found += [{**present, symbol: end} for end in sorted(ends) if end >= 1 and (most is None or end <= most)]
        points = [tuple(size_of(group, steps[name]) for name, group in self._symbols.items()) for steps in found]
        return [point for point in dict.fromkeys(points) if self._trials.taken(point)]

    def _holding(self, found: Traced) -> list[Expression]:
        """When a trace is to be run."""
        texts = [text for name, group in self._symbols.items() for text in bounds_of(group, found.ranges[name])]
        return [Expression(text) for text in texts]

    def _path(self, found: Traced) -> Path:
        sizes = {group.symbol: steps_in(group, self._prober.size(min(group.axes))) for group in self._symbols.values()}
        return Path(found.graph, sizes, [], self._weights & set(found.graph.graph.initializers), found.numbers)


def are_alike(one: Traced, other: Traced) -> bool:
    """Whether two graphs return results of the same types and ranks."""
    kinds = [[_kind(value) for value in each.graph.graph.outputs] for each in (one, other)]
    return one.numbers == other.numbers and kinds[0] == kinds[1]


def _kind(value: ir.Value) -> tuple[ir.DataType | None, int | None]:
    return value.dtype, None if value.shape is None else len(value.shape)
