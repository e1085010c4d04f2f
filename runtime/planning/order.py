"""Nodes in an order in which they can run; files may hold them in any order."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import onnx_ir as ir

from entrepot.ir.errors import ModelFormatError, describe_node
from entrepot.ir.subgraphs import subgraphs


def in_order(graph: ir.Graph | ir.GraphView) -> list[ir.Node]:
    """The nodes of one graph, each after what it reads; the file's order is kept where it is right already.

    Raises:
        ModelFormatError: Nodes depend on each other in a cycle.
    """
    nodes = list(graph)
    place = {id(node): index for index, node in enumerate(nodes)}
    needs = [{place[id(producer)] for producer in producers(node) if id(producer) in place} for node in nodes]
    if all(need < index for index, waited in enumerate(needs) for need in waited):
        return nodes
    return [nodes[index] for index in _sorted(nodes, needs)]


def producers(node: ir.Node) -> Iterator[ir.Node]:
    """The nodes whose results a node reads, in its subgraphs too."""
    for value in reads(node):
        producer = value.producer()
        if producer is not None:
            yield producer


def reads(node: ir.Node) -> Iterator[ir.Value]:
    """The values a node reads, in its subgraphs too; including those made inside the subgraphs."""
    yield from (value for value in node.inputs if value is not None)
    for graph in subgraphs(node):
        for inner in graph:
            yield from reads(inner)
        yield from graph.outputs


def _sorted(nodes: list[ir.Node], needs: list[set[int]]) -> Iterator[int]:
    takers: list[list[int]] = [[] for _ in nodes]
    for index, waited in enumerate(needs):
        for need in waited:
            takers[need].append(index)
    missing = [len(waited) for waited in needs]
    ready = [index for index, count in enumerate(missing) if count == 0]
    done = 0
    while ready:
        index = heapq.heappop(ready)
        yield index
        done += 1
        for taker in takers[index]:
            missing[taker] -= 1
            if missing[taker] == 0:
                heapq.heappush(ready, taker)
    if done < len(nodes):
        stuck = nodes[next(index for index, count in enumerate(missing) if count)]
        raise ModelFormatError("nodes of the graph depend on each other in a cycle", node=describe_node(stuck))
