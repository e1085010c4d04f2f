"""Which provider runs which node, and which nodes are compiled together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from entrepot.ir.errors import UnsupportedOpError, describe_node
from entrepot.ir.printable import printable
from entrepot.ir.traits import traits_of
from entrepot.runtime.dividing.grouping import grouped
from entrepot.runtime.dividing.islands import Islands
from entrepot.runtime.placement import Placement
from entrepot.runtime.planning.order import in_order, reads
from entrepot.runtime.providers import Provider, Setting


@dataclass(frozen=True)
class Run:
    """Nodes that one provider runs, one after the other, with their rows of the plan."""

    provider: Provider
    nodes: Sequence[ir.Node]
    placements: Sequence[Placement]


@dataclass(frozen=True)
class Part:
    """Consecutive nodes of one provider, with what flows in and out."""

    provider: Provider
    graph: ir.GraphView
    placements: tuple[Placement, ...]

    @property
    def inputs(self) -> tuple[ir.Value, ...]:
        """Values that come from feeds or from earlier parts."""
        return tuple(self.graph.inputs)

    @property
    def outputs(self) -> tuple[ir.Value, ...]:
        """Values that later parts or the caller read."""
        return tuple(self.graph.outputs)


_TOLD = 20


def delegated(part: Part, title: str) -> str:
    """A comment in place of the source of a part that has none."""
    rows = part.placements
    lines = [f"{title}: {len(rows)} node{'s' * (len(rows) != 1)} run by '{part.provider.name}', without Python source"]
    for row in rows[:_TOLD]:
        declined = "; ".join(f"{name} declined: {reason}" for name, reason in row.declined.items())
        lines.append(f"  {row.node}{f': {declined}' if declined else ''}")
    if len(rows) > _TOLD:
        lines.append(f"  ... and {len(rows) - _TOLD} more, all in session.plan()")
    # names come from a file: a line break in one must not end the comment
    return "".join(f"# {printable(line).replace(chr(10), ' ')}\n" for line in lines)


def partition(
    setting: Setting, providers: Sequence[Provider], wanted: Sequence[ir.Value], overridden: frozenset[str]
) -> list[Part]:
    """Split what ``wanted`` needs of a model's main graph into parts.

    Each node goes to the first provider that supports it, unless it lies between nodes of the host and copies would
    cost more than it saves (``islands.py``). Parts are as large as they can be. What is the same in every run belongs
    to each part that reads it.

    Args:
        setting: The session's.
        providers: In order of preference.
        wanted: Values that come out.
        overridden: Initializers that are fed.

    Raises:
        UnsupportedOpError: No provider supports some nodes; all of them are named.
    """
    graph = setting.hub.ir.graph
    nodes = needed(in_order(graph), wanted)
    placed = [_place(node, providers, graph.opset_imports.get(node.domain)) for node in nodes]
    failed = [f"{placement.node}: {placement.how}" for _, placement in placed if not placement.provider]
    if failed:
        names = ", ".join(provider.name for provider in providers)
        raise UnsupportedOpError(f"no provider among {names} runs:\n  - " + "\n  - ".join(failed))
    if len({place for place, _ in placed}) <= 1:
        runs = [Run(providers[placed[0][0] if placed else 0], nodes, [row for _, row in placed])]
    else:
        runs = _mixed(setting, providers, nodes, placed, wanted, overridden)
    return _parts(graph, runs, wanted, overridden)


def _mixed(
    setting: Setting,
    providers: Sequence[Provider],
    nodes: Sequence[ir.Node],
    placed: Sequence[tuple[int, Placement]],
    wanted: Sequence[ir.Value],
    overridden: frozenset[str],
) -> list[Run]:
    """The runs of a graph that takes several providers."""
    fixed = _fixed(nodes, [providers[place] for place in {place for place, _ in placed}], wanted, overridden)
    constants = [node for node in nodes if node in fixed]
    rows = dict(zip(nodes, (row for _, row in placed), strict=True))
    flowing = [node for node in nodes if node not in fixed]
    places = [place for node, (place, _) in zip(nodes, placed, strict=True) if node not in fixed]
    places = _without_islands(setting, providers, flowing, places, wanted, rows)
    runs = []
    for place, positions in grouped(flowing, places):
        own = [flowing[at] for at in positions]
        own = [*needed(constants, [value for node in own for value in reads(node)]), *own]
        runs.append(Run(providers[place], own, [replace(rows[node], provider=providers[place].name) for node in own]))
    return runs


def _without_islands(
    setting: Setting,
    providers: Sequence[Provider],
    nodes: Sequence[ir.Node],
    places: Sequence[int],
    wanted: Sequence[ir.Value],
    rows: dict[ir.Node, Placement],
) -> list[int]:
    """Who runs each node, islands given up; their rows say why."""
    devices = [provider.device for provider in providers]
    if all(devices[place].shares_host for place in places):
        return list(places)
    islands = Islands(nodes, places, devices, wanted, setting.types)

    def others(position: int) -> list[int]:
        later = range(places[position] + 1, len(providers))
        return [at for at in later if devices[at].shares_host and not providers[at].supports(nodes[position])]

    for position, reason in islands.give_up(others).items():
        row = rows[nodes[position]]
        rows[nodes[position]] = replace(row, declined={**row.declined, row.provider: reason})
    return islands.places


def _fixed(
    nodes: Sequence[ir.Node], used: Iterable[Provider], wanted: Iterable[ir.Value], overridden: frozenset[str]
) -> set[ir.Node]:
    """Nodes whose results are the same in every run, and that each of the providers could run."""
    found: set[ir.Node] = set()
    returned = set(wanted)
    for node in nodes:
        same = traits_of(node).repeats and all(_is_fixed(value, found, overridden) for value in reads(node))
        if same and returned.isdisjoint(node.outputs) and not any(provider.supports(node) for provider in used):
            found.add(node)
    return found


def _is_fixed(value: ir.Value, nodes: set[ir.Node], overridden: frozenset[str]) -> bool:
    producer = value.producer()
    return value.is_initializer() and value.name not in overridden if producer is None else producer in nodes


def needed(nodes: Sequence[ir.Node], wanted: Iterable[ir.Value]) -> list[ir.Node]:
    """The nodes that ``wanted`` depends on, in the same order."""
    live = set(wanted)
    kept = []
    for node in reversed(nodes):
        if any(output in live for output in node.outputs):
            kept.append(node)
            live.update(reads(node))
    return kept[::-1]


def _place(node: ir.Node, providers: Sequence[Provider], opset: int | None) -> tuple[int, Placement]:
    declined: dict[str, str] = {}
    for place, provider in enumerate(providers):
        reason = provider.supports(node)
        if not reason:
            return place, Placement(describe_node(node, opset), node.op_type, provider.name, declined=declined)
        declined[provider.name] = reason
    reasons = "; ".join(f"{name}: {reason}" for name, reason in declined.items())
    return 0, Placement(describe_node(node, opset), node.op_type, "", reasons, declined)


def _parts(graph: ir.Graph, runs: Sequence[Run], wanted: Sequence[ir.Value], overridden: frozenset[str]) -> list[Part]:
    fed = [v for v in graph.inputs if v.name not in graph.initializers or v.name in overridden]
    read_later = dict.fromkeys(wanted)
    # a weight that is a result as well: the part that runs last hands it over
    weights = [v for v in wanted if v.name in graph.initializers and v.name not in overridden and _outer(v, graph)]
    parts: list[Part] = []
    for run in reversed(runs):
        made = dict.fromkeys(output for node in run.nodes for output in node.outputs)
        outputs = [*(value for value in made if value in read_later), *([] if parts else dict.fromkeys(weights))]
        outputs = list(wanted) if len(runs) == 1 else outputs
        taken = dict.fromkeys(value for node in run.nodes for value in reads(node))
        taken.update(dict.fromkeys(value for value in outputs if value not in made))
        own = [v for v in taken if v.name in graph.initializers and v.name not in overridden and _outer(v, graph)]
        flowing = [v for v in taken if v not in made and v not in own and _outer(v, graph)]
        inputs = fed if len(runs) == 1 else [v for v in fed if v in flowing] + [v for v in flowing if v not in fed]
        read_later.update(dict.fromkeys(inputs))
        view = ir.GraphView(
            inputs, outputs, nodes=run.nodes, initializers=own, opset_imports=dict(graph.opset_imports), name=graph.name
        )
        parts.append(Part(run.provider, view, tuple(run.placements)))
    return parts[::-1]


def _outer(value: ir.Value, graph: ir.Graph) -> bool:
    """Whether a value belongs to the main graph itself, not to a subgraph of one of its nodes."""
    producer = value.producer()
    return value.graph is graph if producer is None else producer.graph is graph
