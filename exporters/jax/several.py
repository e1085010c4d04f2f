"""Traces at several sizes of axes that one trace fixes, put together: unrolled loops, constants made of sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.jax.branches import Traced
from entrepot.exporters.options import Options
from entrepot.exporters.paths.expression import Expression
from entrepot.exporters.paths.following import Unfollowed, follow
from entrepot.exporters.paths.path import Path

if TYPE_CHECKING:
    from entrepot.exporters.jax.source import JaxSource

Trace = Callable[[Sequence[Any]], Traced | None]
"""A graph for some arrays, in which the sizes of the axes that are lost are theirs; ``None`` where there is none."""


def put_together(
    source: JaxSource, prober: Prober, groups: Sequence[Group], kept: Sequence[Group], trace: Trace, options: Options
) -> Traced | None:
    """One graph in which all axes vary, if there is a rule in what differs from size to size.

    Args:
        source: The function.
        prober: Knows which sizes it takes.
        groups: The axes that are to vary.
        kept: Those of them that vary in a trace.
        trace: Traces the function for some arrays.
        options: Told each trace.
    """
    lost = [group for group in groups if group not in kept]
    if not lost or any(group.formula is not None for group in groups):
        return None
    wanted = [
        replace(group, bounds={"min": 2}, automatic=False, single=False) if group in lost else group for group in groups
    ]
    lost = [group for group in wanted if group not in groups]
    weights = frozenset(source.model.weights.values())

    def path(arrays: Sequence[Any]) -> Path | None:
        traced = trace(arrays)
        if traced is None:
            return None
        sizes = [(group.symbol, min(group.axes)) for group in lost]
        fixed = [Expression(f"Eq({symbol}, {arrays[at].shape[axis]})") for symbol, (at, axis) in sizes]
        return Path(traced.graph, {}, fixed, weights & traced.graph.graph.initializers.keys(), traced.numbers)

    try:
        found = follow(source, prober, wanted, lost, path, options.tell)
    except Unfollowed as reason:
        options.tell(f"traces at several sizes do not add up: {reason}")
        return None
    return Traced(found.graph, found.numbers, {})
