"""Nodes that compute in another element type than their graph has."""

from __future__ import annotations

import onnx_ir as ir


def cast_before(graph: ir.Graph, node: ir.Node, value: ir.Value, to: ir.DataType) -> ir.Value:
    """A value in another type, made just before a node."""
    made = _cast(value, to)
    cast = made.producer()
    assert cast is not None
    graph.insert_before(node, cast)
    return made


def cast_after(graph: ir.Graph, node: ir.Node, value: ir.Value, computed: ir.DataType, kept: ir.DataType) -> None:
    """Compute a result in one type, and let everything read it in another; an output keeps its name."""
    value.type = ir.TensorType(computed)
    made = _cast(value, kept)
    cast = made.producer()
    assert cast is not None
    graph.insert_after(node, cast)
    for use in [use for use in value.uses() if use.node is not cast]:
        use.node.replace_input_with(use.idx, made)
    for at, output in enumerate(graph.outputs):
        if output is value:
            made.name, value.name = value.name, value.name and f"{value.name}.{computed.name.lower()}"
            graph.outputs[at] = made


def _cast(value: ir.Value, to: ir.DataType) -> ir.Value:
    made = ir.node("Cast", [value], {"to": int(to)}).outputs[0]
    made.shape, made.type = value.shape, ir.TensorType(to)
    made.name = value.name and f"{value.name}.{to.name.lower()}"
    return made
