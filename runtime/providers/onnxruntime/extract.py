"""A part of a graph as a model of its own."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from entrepot.ir.model import Model
from entrepot.ir.typing.plain import Type, to_ir


def extract(model: ir.Model, part: ir.GraphView, types: Mapping[ir.Value, Type]) -> Model:
    """The part's nodes as the main graph of a new model; weights are shared, the argument is not changed.

    Args:
        model: The whole model.
        part: Some nodes of its main graph.
        types: What is known of the values that become inputs: onnxruntime asks for their element types.
    """
    place = {node: index for index, node in enumerate(model.graph)}
    kept = {place[node] for node in part}
    names = {value.name for value in part.initializers.values()}
    copy = model.clone()
    graph = copy.graph
    nodes = list(graph)
    values = _by_name(graph)
    wanted = [values[value.name or ""] for value in part.outputs]
    inputs = [_input(values[value.name or ""], types.get(value)) for value in part.inputs]
    graph.outputs.clear()
    graph.remove([node for index, node in enumerate(nodes) if index not in kept], safe=False)
    graph.inputs.clear()
    for name in [name for name in graph.initializers if name not in names]:
        del graph.initializers[name]
    graph.inputs.extend(inputs)
    graph.outputs.extend(wanted)
    return Model(copy)


def _by_name(graph: ir.Graph) -> dict[str, ir.Value]:
    made = [output for node in graph for output in node.outputs]
    return {value.name or "": value for value in [*graph.initializers.values(), *graph.inputs, *made]}


def _input(value: ir.Value, known: Type | None) -> ir.Value:
    """A value detached from its producer, so that it can be an input."""
    if value.producer() is None and not value.is_initializer():
        return value
    kind, shape = (value.type, value.shape) if known is None else to_ir(known)
    fresh = ir.Value(name=value.name, type=kind, shape=shape)
    value.replace_all_uses_with(fresh, replace_graph_outputs=True)
    return fresh
