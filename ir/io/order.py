"""Whether the nodes of a graph can be put into any order at all."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir

from entrepot.ir.subgraphs import subgraphs


def find_cycle(graph: onnx_ir.Graph) -> onnx_ir.Node | None:
    """A node that depends on itself, or ``None``; what its subgraphs use from outside counts as its input."""
    waiting: dict[onnx_ir.Node, int] = {}
    users: dict[onnx_ir.Node, list[onnx_ir.Node]] = {}
    for node in graph:
        producers = set(_producers(node, graph))
        waiting[node] = len(producers)
        for producer in producers:
            users.setdefault(producer, []).append(node)
    ready = [node for node, count in waiting.items() if not count]
    while ready:
        node = ready.pop()
        del waiting[node]
        for user in users.get(node, ()):
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    return _on_a_cycle(waiting, graph)


def _producers(node: onnx_ir.Node, graph: onnx_ir.Graph) -> Iterator[onnx_ir.Node]:
    pending = [node]
    while pending:
        inner = pending.pop()
        for value in inner.inputs:
            producer = None if value is None else value.producer()
            if producer is not None and producer.graph is graph:
                yield producer
        for subgraph in subgraphs(inner):
            pending.extend(subgraph)


def _on_a_cycle(stuck: dict[onnx_ir.Node, int], graph: onnx_ir.Graph) -> onnx_ir.Node | None:
    """Nodes behind a cycle are stuck too; walking back along producers ends up on the cycle."""
    node = next(iter(stuck), None)
    seen: set[onnx_ir.Node] = set()
    while node is not None and node not in seen:
        seen.add(node)
        node = next((producer for producer in _producers(node, graph) if producer in stuck), None)
    return node
