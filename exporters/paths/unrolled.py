"""Captures in which Python unrolled a loop, side by side: which nodes are iterations, and what each of them reads."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import onnx_ir

from entrepot.exporters.paths.outline import is_constant
from entrepot.exporters.paths.path import Path
from entrepot.exporters.paths.periods import Stretch, aligned

JOINING = "Concat"
"""The operator that takes any number of inputs, and so one of each iteration."""

Peel: TypeAlias = tuple[int, int]
"""How many iterations, the first ones and the last ones."""

Key: TypeAlias = tuple[int, int]
"""A value in a body: which node, which output."""


@dataclass(frozen=True)
class Place:
    """Where a value comes from.

    Attributes:
        kind: ``input``, ``weight``, ``constant``, ``node`` or ``loop``.
        of: Its number or name; for a loop the number of the loop.
        key: For a loop, which node of an iteration and which output; for a node the output.
        step: For a loop, which iteration.
    """

    kind: str
    of: Any
    key: Any = 0
    step: int = 0


@dataclass
class Unrolled:
    """One capture, taken apart.

    Attributes:
        path: The capture.
        single: Its nodes that are no iterations.
        loops: By loop and iteration, the nodes.
        places: Where each value comes from.
    """

    path: Path
    single: list[onnx_ir.Node] = field(default_factory=list)
    loops: list[list[list[onnx_ir.Node]]] = field(default_factory=list)
    places: dict[onnx_ir.Value, Place] = field(default_factory=dict)

    def place(self, value: onnx_ir.Value | None) -> Place:
        """Where a value comes from; a constant by itself."""
        if value is None:
            return Place("none", None)
        if value in self.places:
            return self.places[value]
        if value.name in self.path.weights and value.is_initializer():
            return Place("weight", value.name)
        return Place("constant", value)


def taken_apart(paths: Sequence[Path], peeled: Mapping[int, Peel]) -> list[Unrolled] | None:
    """Captures as single nodes and loops, the same ones in each; ``None`` if there are none, or they differ otherwise.

    Args:
        paths: The captures.
        peeled: By loop, how many iterations are left out of it at either end.
    """
    sequences = [[node for node in path.graph.graph if not is_constant(node)] for path in paths]
    found = aligned(
        [[_label(node, path.weights) for node in nodes] for path, nodes in zip(paths, sequences, strict=True)]
    )
    if found is None or not any(each.count > 1 for each in found[0]):
        return None
    return [_unrolled(path, nodes, parts, peeled) for path, nodes, parts in zip(paths, sequences, found, strict=True)]


def _unrolled(
    path: Path, nodes: Sequence[onnx_ir.Node], parts: Sequence[Stretch], peeled: Mapping[int, Peel]
) -> Unrolled:
    result = Unrolled(path)
    result.places.update((value, Place("input", at)) for at, value in enumerate(path.graph.graph.inputs))
    for part in parts:
        steps = [list(nodes[part.start + at * part.length :][: part.length]) for at in range(part.count)]
        front, back = peeled.get(len(result.loops), (0, 0)) if part.count > 1 else (len(steps), 0)
        _add_singles(result, steps[:front])
        if part.count > 1:
            _add_loop(result, steps[front : len(steps) - back])
        _add_singles(result, steps[len(steps) - back :])
    return result


def _add_singles(result: Unrolled, steps: Sequence[Sequence[onnx_ir.Node]]) -> None:
    for nodes in steps:
        for node in nodes:
            _add_single(result, node)


def _add_single(result: Unrolled, node: onnx_ir.Node) -> None:
    number = len(result.single)
    result.places.update((value, Place("node", number, at)) for at, value in enumerate(node.outputs))
    result.single.append(node)


def _add_loop(result: Unrolled, steps: list[list[onnx_ir.Node]]) -> None:
    number = len(result.loops)
    for step, nodes in enumerate(steps):
        for at, node in enumerate(nodes):
            places = {value: Place("loop", number, (at, output), step) for output, value in enumerate(node.outputs)}
            result.places.update(places)
    result.loops.append(steps)


def _label(node: onnx_ir.Node, weights: frozenset[str]) -> Hashable:
    """What makes two nodes the same one in different iterations: loops over the same weights do not run into others."""
    read = tuple(
        value.name if value is not None and value.is_initializer() and value.name in weights else ""
        for value in node.inputs
    )
    count = -1 if node.op_type == JOINING else len(node.inputs)
    missing = tuple(at for at, value in enumerate(node.inputs) if value is None)
    named = () if count < 0 else read
    return node.domain, node.op_type, count, missing, named, len(node.outputs), _attributes(node)


def _attributes(node: onnx_ir.Node) -> Hashable:
    return tuple((name, _text(attribute)) for name, attribute in sorted(node.attributes.items()))


def _text(attribute: onnx_ir.Attr) -> Hashable:
    if attribute.type == onnx_ir.AttributeType.TENSOR:
        return attribute.as_tensor().numpy().tobytes()
    if attribute.type == onnx_ir.AttributeType.GRAPH:
        return id(attribute)  # bodies are compared nowhere, so they are never the same
    return str(attribute.value)
