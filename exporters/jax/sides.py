"""Conditions on several sizes at once, ``batch * time > 20``, at which a model goes another way: each side is traced.

JAX keeps to a condition that it is told beforehand, so that the function decides it in the same way throughout a trace,
and an If of the graph asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.jax.branches import Traced, are_alike
from entrepot.exporters.jax.dims import names_in
from entrepot.exporters.jax.ranges import symbols_of
from entrepot.exporters.jax.upstream import EQUAL, Comparison
from entrepot.exporters.paths.expression import Expression
from entrepot.exporters.paths.joining import joined
from entrepot.exporters.paths.path import Path
from entrepot.exporters.paths.trying import Trials

if TYPE_CHECKING:
    from entrepot.exporters.jax.source import JaxSource

_MOST = 3
"""How many conditions a side may have."""
_TRIED = 4
"""At how many sizes each side is tried: those that the proof tries may all be on one."""

Side = tuple[tuple[str, ...], Traced]
Trace = Callable[[Sequence[str]], "Traced | Sequence[Comparison]"]
"""A graph that holds under some conditions, or the comparisons that are not decided by those."""


def both_sides(
    source: JaxSource, prober: Prober, groups: Sequence[Group], trace: Trace, weights: frozenset[str]
) -> Traced | None:
    """One graph for all sizes; ``None`` where there is none, or nothing depends on several sizes at once.

    Args:
        source: The model.
        prober: Knows which sizes it takes.
        groups: The axes that vary.
        trace: Makes a graph.
        weights: The names of weights, which are the same in every trace.
    """
    if any(group.step != 1 or group.formula is not None for group in groups):
        return None
    sides = _sides(trace, ())
    if sides is None or len(sides) < 2 or not all(are_alike(sides[0][1], other) for _, other in sides):
        return None
    conditions = [[Expression(text) for text in texts] for texts, _ in sides]
    trials = Trials(source, prober, groups, [group.symbol for group in groups])
    points = [_points(trials, each) for each in conditions]
    if not all(points):  # what nobody has tried is not known to be right
        return None
    sizes = {group.symbol: prober.size(min(group.axes)) for group in symbols_of(groups).values()}
    paths = [
        Path(found.graph, sizes, [], weights & set(found.graph.graph.initializers), found.numbers) for _, found in sides
    ]
    graph, numbers = joined(paths, conditions[:-1], groups), sides[0][1].numbers
    every = list(dict.fromkeys(point for each in points for point in each))
    return None if trials.wrong(graph, every, numbers) else Traced(graph, numbers, {})


def _sides(trace: Trace, conditions: tuple[str, ...]) -> list[Side] | None:
    found = trace(conditions)
    if isinstance(found, Traced):
        return [(conditions, found)]
    compared = next(filter(is_joint, found), None)
    if compared is None or len(conditions) == _MOST:
        return None
    sides = [_sides(trace, (*conditions, text)) for text in _texts(compared)]
    return None if None in sides else [each for side in sides for each in side or ()]


def is_joint(compared: Comparison) -> bool:
    """Whether it is of several sizes, and one that can be told to JAX, and asked for in a graph."""
    if compared.operator == EQUAL or len(names_in(compared.left) | names_in(compared.right)) < 2:
        return False
    try:
        return all(Expression(text) for text in _texts(compared))
    except ValueError:
        return False


def _texts(compared: Comparison) -> tuple[str, str]:
    """A comparison, and its opposite."""
    left, operator, right = compared
    if operator in (">", ">="):
        left, right = right, left
    if operator in ("<=", ">="):
        return f"{left} <= {right}", f"{left} >= {right} + 1"
    return f"{left} + 1 <= {right}", f"{left} >= {right}"


def _points(trials: Trials, conditions: Sequence[Expression]) -> list[tuple[int, ...]]:
    """Sizes at which conditions hold, and which the model takes."""
    found = []
    for point in trials.points:
        if all(condition(trials.sizes(point)) for condition in conditions) and trials.taken(point):
            found.append(point)
            if len(found) == _TRIED:
                break
    return found
