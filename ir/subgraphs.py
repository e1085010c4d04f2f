"""The graphs that nodes carry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx_ir as ir


def subgraphs(node: ir.Node) -> Iterator[ir.Graph]:
    """The graphs among a node's attributes, such as the branches of an If, but not the graphs inside those."""
    for attribute in node.attributes.data.values():  # those of the UserDict itself take five times as long
        if attribute.type not in _KINDS or attribute.is_ref():
            continue
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.as_graph()
        else:
            yield from attribute.as_graphs()


_KINDS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


def with_subgraphs(*graphs: ir.Graph) -> Iterator[ir.Graph]:
    """Graphs, each followed by all that lie inside it, however deep."""
    pending = list(reversed(graphs))
    while pending:
        graph = pending.pop()
        yield graph
        inside = [body for node in graph if node.attributes.data for body in subgraphs(node)]
        pending.extend(reversed(inside))


def nodes_with_subgraphs(graph: Iterable[ir.Node]) -> Iterator[ir.Node]:
    """The nodes that carry graphs, in order, each before those inside its graphs."""
    for node in graph:
        if node.attributes.data and (bodies := list(subgraphs(node))):
            yield node
            for body in bodies:
                yield from nodes_with_subgraphs(body)
