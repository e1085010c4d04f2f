"""What would end the whole process on onnxruntime (1.31) is made to fail instead, as errors do that can be caught."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx

_SHAPES = {"GRU": (0, 0, -1), "LSTM": (-1, 0, 0)}
"""The shape as it is, said so that there is none where the process would end: no sequence or no batch, and no batch."""


def guard(model: onnx.ModelProto) -> None:
    """Put a Reshape before each recurrent layer: to the same shape, and an error where there are no elements."""
    for nodes in _lists(model):
        made = list(_guarded(nodes))
        if len(made) > len(nodes):
            del nodes[:]
            nodes.extend(made)


def _lists(model: onnx.ModelProto) -> Iterator[Any]:
    """The nodes of the graph, of functions, and of bodies within, which come first: nodes around them are copied."""
    for nodes in (model.graph.node, *(function.node for function in model.functions)):
        yield from _inner(nodes)
        yield nodes


def _inner(nodes: Any) -> Iterator[Any]:
    for node in nodes:
        for attribute in node.attribute:
            for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                yield from _inner(graph.node)
                yield graph.node


def _guarded(nodes: Any) -> Iterator[onnx.NodeProto]:
    for at, node in enumerate(nodes):
        if node.op_type in _SHAPES and node.domain in ("", "ai.onnx"):
            place = f"{node.input[0]}/{at}/{'/'.join(node.output)}"
            shape, some = f"{place}/shape", f"{place}/some"
            name = f"{node.op_type} '{node.name}' of nothing, where onnxruntime would end the process"
            yield onnx.helper.make_node("Constant", [], [shape], value_ints=_SHAPES[node.op_type])
            yield onnx.helper.make_node("Reshape", [node.input[0], shape], [some], name=name)
            node.input[0] = some
        yield node
