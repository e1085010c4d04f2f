"""Where an encoder ends and the keys and values for decoders begin: one value, through which all of it goes."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.errors import ConversionError
from entrepot.runtime.planning.order import in_order, reads


def memory_of(graph: ir.Graph) -> ir.Value:
    """The last value that every output is computed from, and nothing else of what is given: an encoder's results.

    Raises:
        ConversionError: There is none but an input.
    """
    place = {node: index for index, node in enumerate(in_order(graph))}
    varying = _varying(graph, list(place))
    frontier = {value for value in graph.outputs if value in varying}
    while len(frontier) > 1:
        last = max(frontier, key=lambda value: place.get(value.producer(), -1))  # type: ignore[arg-type]
        producer = last.producer()
        if producer is None:
            break
        frontier -= set(producer.outputs)
        frontier |= {value for value in reads(producer) if value in varying}
    if len(frontier) != 1 or (found := frontier.pop()).producer() is None:
        raise ConversionError(
            "what the encoder leaves has no single source, which this layout passes to the decoder",
            hint="save it without layout",
        )
    return found


def between(graph: ir.Graph, source: ir.Value) -> list[ir.Node]:
    """The nodes that compute the outputs from a value, in an order in which they run."""
    needed: set[ir.Node] = set()
    waiting = [value for value in graph.outputs if value is not source]
    while waiting:
        producer = waiting.pop().producer()
        if producer is not None and producer not in needed:
            needed.add(producer)
            waiting += [value for value in reads(producer) if value is not source]
    return [node for node in in_order(graph) if node in needed]


def _varying(graph: ir.Graph, nodes: list[ir.Node]) -> set[ir.Value]:
    """What depends on the inputs."""
    found = {value for value in graph.inputs if value.const_value is None}
    for node in nodes:
        if any(value in found for value in reads(node)):
            found.update(node.outputs)
    return found
