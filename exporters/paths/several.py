"""Captures at several sizes of axes that one capture fixes, put together: unrolled loops, constants made of sizes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import onnx_ir

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.exporter import Source
from entrepot.exporters.options import Options
from entrepot.exporters.paths.expression import Expression
from entrepot.exporters.paths.following import Unfollowed, follow
from entrepot.exporters.paths.path import Path


class Taken(NamedTuple):
    """One capture: a graph, which of its initializers are weights, and which of its outputs are numbers."""

    graph: onnx_ir.Model
    weights: Collection[str]
    numbers: frozenset[str] = frozenset()


Take = Callable[[Sequence[Any]], Taken | None]
"""A capture for some arrays, in which the sizes of the axes that are lost are theirs; ``None`` where there is none."""


def put_together(
    source: Source, prober: Prober, groups: Sequence[Group], kept: Sequence[Group], take: Take, options: Options
) -> Path | None:
    """One graph in which all axes vary, if there is a rule in what differs from size to size.

    Args:
        source: The model.
        prober: Knows which sizes it takes.
        groups: The axes that are to vary.
        kept: Those of them that vary in one capture.
        take: Captures the model for some arrays.
        options: Told each capture.
    """
    lost = [group for group in groups if group not in kept]
    if not lost or any(group.formula is not None for group in groups):
        return None
    wanted = [
        replace(group, bounds={"min": 2}, automatic=False, single=False) if group in lost else group for group in groups
    ]
    lost = [group for group in wanted if group not in groups]

    def path(arrays: Sequence[Any]) -> Path | None:
        taken = take(arrays)
        if taken is None:
            return None
        sizes = [(group.symbol, min(group.axes)) for group in lost]
        fixed = [Expression(f"Eq({symbol}, {arrays[at].shape[axis]})") for symbol, (at, axis) in sizes]
        weights = frozenset(taken.weights) & taken.graph.graph.initializers.keys()
        return Path(taken.graph, {}, fixed, weights, taken.numbers)

    try:
        return follow(source, prober, wanted, lost, path, options.tell)
    except Unfollowed as reason:
        options.tell(f"captures at several sizes do not add up: {reason}")
        return None
