"""Which provider runs which node: the first in order that supports it; neighbours are compiled together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from entrepot.ir.errors import UnsupportedOpError, describe_node
from entrepot.ir.printable import printable
from entrepot.runtime.order import in_order, reads
from entrepot.runtime.providers import Provider


@dataclass(frozen=True)
class Placement:
    """Where one node runs, and why.

    Attributes:
        node: The node, as messages describe it.
        op_type: Its operator.
        provider: Who runs it.
        how: What it became there: ``native``, ``fused with 'relu'``, ``fused into 'conv'``, ``folded``, ...
        declined: Providers asked earlier, each with its reason.
    """

    node: str
    op_type: str
    provider: str
    how: str = ""
    declined: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Where every node of the main graph runs; prints as a table.

    Attributes:
        placements: One per node.
        remarks: What would make the session faster on this machine.
    """

    placements: tuple[Placement, ...]
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = [("node", "operator", "provider", "how", "declined by")]
        for row in self.placements:
            declined = "; ".join(f"{name}: {reason}" for name, reason in row.declined.items())
            rows.append((row.node, row.op_type, row.provider, row.how, declined))
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = ["  ".join([*(row[i].ljust(widths[i]) for i in range(4)), row[4]]).rstrip() for row in rows]
        return "\n".join([*lines, *(f"note: {remark}" for remark in self.remarks)])


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
    graph: ir.Graph, providers: Sequence[Provider], wanted: Sequence[ir.Value], overridden: frozenset[str]
) -> list[Part]:
    """Split what ``wanted`` needs of a graph into parts.

    Raises:
        UnsupportedOpError: No provider supports some nodes; all of them are named.
    """
    nodes = needed(in_order(graph), wanted)
    placed = [_place(node, providers, graph.opset_imports.get(node.domain)) for node in nodes]
    failed = [f"{placement.node}: {placement.how}" for _, placement in placed if not placement.provider]
    if failed:
        names = ", ".join(provider.name for provider in providers)
        raise UnsupportedOpError(f"no provider among {names} runs:\n  - " + "\n  - ".join(failed))
    runs: list[tuple[Provider, list[ir.Node], list[Placement]]] = []
    for node, (provider, placement) in zip(nodes, placed, strict=True):
        if not runs or runs[-1][0] is not provider:
            runs.append((provider, [], []))
        runs[-1][1].append(node)
        runs[-1][2].append(placement)
    return _parts(graph, runs or [(providers[0], [], [])], wanted, overridden)


def needed(nodes: Sequence[ir.Node], wanted: Iterable[ir.Value]) -> list[ir.Node]:
    """The nodes that ``wanted`` depends on, in the same order."""
    live = set(wanted)
    kept = []
    for node in reversed(nodes):
        if any(output in live for output in node.outputs):
            kept.append(node)
            live.update(reads(node))
    return kept[::-1]


def _place(node: ir.Node, providers: Sequence[Provider], opset: int | None) -> tuple[Provider, Placement]:
    declined: dict[str, str] = {}
    for provider in providers:
        reason = provider.supports(node)
        if not reason:
            return provider, Placement(describe_node(node, opset), node.op_type, provider.name, declined=declined)
        declined[provider.name] = reason
    reasons = "; ".join(f"{name}: {reason}" for name, reason in declined.items())
    return providers[0], Placement(describe_node(node, opset), node.op_type, "", reasons, declined)


def _parts(
    graph: ir.Graph,
    runs: Sequence[tuple[Provider, list[ir.Node], list[Placement]]],
    wanted: Sequence[ir.Value],
    overridden: frozenset[str],
) -> list[Part]:
    fed = [v for v in graph.inputs if v.name not in graph.initializers or v.name in overridden]
    read_later = dict.fromkeys(wanted)
    parts = []
    for provider, nodes, placements in reversed(runs):
        made = dict.fromkeys(output for node in nodes for output in node.outputs)
        outputs = list(wanted) if len(runs) == 1 else [value for value in made if value in read_later]
        taken = dict.fromkeys(value for node in nodes for value in reads(node))
        taken.update(dict.fromkeys(value for value in outputs if value not in made))
        own = [v for v in taken if v.name in graph.initializers and v.name not in overridden and _outer(v, graph)]
        flowing = [v for v in taken if v not in made and v not in own and _outer(v, graph)]
        inputs = fed if len(runs) == 1 else [v for v in fed if v in flowing] + [v for v in flowing if v not in fed]
        read_later.update(dict.fromkeys(inputs))
        view = ir.GraphView(
            inputs, outputs, nodes=nodes, initializers=own, opset_imports=dict(graph.opset_imports), name=graph.name
        )
        parts.append(Part(provider, view, tuple(placements)))
    return parts[::-1]


def _outer(value: ir.Value, graph: ir.Graph) -> bool:
    """Whether a value belongs to the main graph itself, not to a subgraph of one of its nodes."""
    producer = value.producer()
    return value.graph is graph if producer is None else producer.graph is graph
