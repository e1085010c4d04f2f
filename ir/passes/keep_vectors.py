from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.graphs import has_references, typed_graphs
from entrepot.ir.traits import traits_of
from entrepot.ir.typing.query import Types

_INPUTS = 13
"""The opset from which Squeeze and Unsqueeze take their axes as inputs."""

_OF_ONE = frozenset({"Cast", "Neg", "Abs", "Floor", "Ceil", "Not"})

_Reading: TypeAlias = Literal["scalar", "joins", "broadcasts", "vector"]


class KeepVectors(ir.passes.InPlacePass):
    """Compute with sizes as the vectors of one element that Shape returns and Concat takes.

    Before: ``Shape -> Squeeze -> Add -> Reshape([-1]) -> Concat``. After: ``Shape -> Add -> Concat``.
    Numbers that are computed from one another change together, if that leaves fewer nodes: what has to have a scalar,
    such as Range or a graph output, gets it from a Squeeze. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names = Names(model)
        changed = [
            _change(numbers, names)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _INPUTS
            for numbers in _groups(graph, types)
            if _gain(numbers) > 0
        ]
        return ir.passes.PassResult(model, modified=bool(changed))


@dataclass(eq=False)
class _Number:
    """A scalar that may become a vector of one element.

    Attributes:
        value: The scalar.
        squeeze: What makes it of a vector, if that is all that makes it.
        readers: Who reads it, at which place, and how.
        group: The numbers that it is computed from, or that are computed from it, itself included.
    """

    value: ir.Value
    squeeze: ir.Node | None
    readers: list[tuple[ir.Node, int, _Reading]]
    group: list[_Number] = field(default_factory=list)

    @property
    def is_needed(self) -> bool:
        """Whether somebody has to have the scalar."""
        return self.value.is_graph_output() or any(reading == "scalar" for *_, reading in self.readers)


def _groups(graph: ir.Graph | ir.Function, types: Types) -> list[list[_Number]]:
    """The numbers of a graph, those together that change together."""
    pending = {node.outputs[0]: node for node in graph if _makes_scalar(node, types)}
    sources, waiting, found = dict(pending), list(pending), dict[ir.Value, _Number]()
    while waiting:
        value = waiting.pop()
        if value in found:
            continue
        readers = [(use.node, use.idx, _reading(use.node, value, graph, types)) for use in value.uses()]
        number = found[value] = _Number(value, sources.get(value), readers)
        number.group.append(number)
        waiting += [node.outputs[0] for node, _, reading in readers if reading == "joins"]
    for number in found.values():
        for node, _, reading in number.readers:
            if reading == "joins":
                _join(number, found[node.outputs[0]])
    return list({id(number.group): number.group for number in found.values()}.values())


def _join(one: _Number, other: _Number) -> None:
    if one.group is not other.group:
        one.group += other.group
        for number in other.group:
            number.group = one.group


def _makes_scalar(node: ir.Node, types: Types) -> bool:
    if node.op_type != "Squeeze" or node.domain or has_references(node):
        return False
    given = types.shape(node.inputs[0])
    return given is not None and list(given) == [1] and _rank(node.outputs[0], types) == 0


def _rank(value: ir.Value, types: Types) -> int | None:
    shape = types.shape(value)
    return None if shape is None else len(shape)


def _reading(node: ir.Node, value: ir.Value, graph: ir.Graph | ir.Function, types: Types) -> _Reading:
    """What a node would do with a vector: refuse it, compute another, or something larger; or whether it makes one."""
    rank = _rank(node.outputs[0], types) if node.outputs else None
    if node.graph is not graph or node.domain or has_references(node) or rank is None:
        return "scalar"
    if traits_of(node).broadcasts or node.op_type in _OF_ONE:
        return "broadcasts" if rank else "joins"
    return "vector" if _makes_vector(node, value, types) else "scalar"


def _makes_vector(node: ir.Node, value: ir.Value, types: Types) -> bool:
    wanted: dict[str, Sequence[list[int]]] = {"Reshape": ([-1], [1]), "Unsqueeze": ([0], [-1])}
    if node.inputs[0] is not value or node.outputs[0].is_graph_output():
        return False
    known = types.known.array(node.inputs[1]) if node.op_type in wanted else None
    return known is not None and known.tolist() in wanted[node.op_type]


def _gain(numbers: Sequence[_Number]) -> int:
    """How many nodes fewer there are with vectors."""
    left_out = {node for number in numbers for node, _, reading in number.readers if reading == "vector"}
    sources = sum(number.squeeze is not None and not number.is_needed for number in numbers)
    return len(left_out) + sources - sum(number.squeeze is None and number.is_needed for number in numbers)


def _change(numbers: Sequence[_Number], names: Names) -> bool:
    for number in numbers:
        value = number.value
        vector = value if number.squeeze is None else number.squeeze.inputs[0]
        assert vector is not None
        if number.squeeze is None and number.is_needed:
            _squeeze(number, names)
        for node, at, reading in number.readers:
            if reading == "vector":
                node.outputs[0].replace_all_uses_with(vector)
            elif reading != "scalar":
                node.replace_input_with(at, vector)
        if number.squeeze is None:
            value.shape = ir.Shape([1])
    return True


def _squeeze(number: _Number, names: Names) -> None:
    """Make the scalar of the vector for those that have to have it; a graph output keeps its name."""
    value, producer = number.value, number.value.producer()
    assert producer is not None
    assert producer.graph is not None
    node = ir.node("Squeeze", [value])
    scalar = node.outputs[0]
    scalar.name = node.name = names.fresh(f"{value.name}_scalar")
    scalar.type, scalar.shape = value.type, ir.Shape([])
    producer.graph.insert_after(producer, node)
    if value.is_graph_output():
        scalar.name, value.name = value.name, scalar.name
    _replace_output(value, scalar)
    for reader, at, reading in number.readers:
        if reading == "scalar":
            reader.replace_input_with(at, scalar)


def _replace_output(value: ir.Value, other: ir.Value) -> None:
    outputs = value.graph.outputs if value.graph is not None else []
    for at, output in enumerate(outputs):
        if output is value:
            outputs[at] = other
