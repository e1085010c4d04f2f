"""Two captures of one model, side by side: the same nodes in the same order, and which constants differ."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx_ir

Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Use:
    """Where a constant is read.

    Attributes:
        holder: A node, or the graph whose result it is.
        at: Which input, or which result.
        value: The constant.
    """

    holder: onnx_ir.Node | onnx_ir.Graph
    at: int
    value: onnx_ir.Value

    def replace(self, other: onnx_ir.Value) -> None:
        """Let another value be read here, and nowhere else."""
        if isinstance(self.holder, onnx_ir.Node):
            self.holder.replace_input_with(self.at, other)
        else:
            self.holder.outputs[self.at] = other


@dataclass
class Outline:
    """What a graph does, without the values of its constants.

    Attributes:
        keys: One per node: its operator, attributes and where its inputs come from.
        outputs: Where the results come from.
        constants: The uses of values that are constant. Two that read one value count apart: a size that is 8 in one
            capture is found beside other eights there, and is 7 in the next.
    """

    keys: list[Key] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    constants: list[Use] = field(default_factory=list)

    def same(self, other: Outline) -> bool:
        """Whether both do the same, up to their constants."""
        return self.keys == other.keys and self.outputs == other.outputs


def outline(graph: onnx_ir.Graph, weights: Collection[str]) -> Outline:
    """The outline of a graph; initializers named in ``weights`` are the same tensor in every capture."""
    return _Reader(graph, weights).read()


def array_of(value: onnx_ir.Value) -> np.ndarray | None:
    """The value of a constant, if it is one that can be read."""
    tensor = value.const_value
    if tensor is None and (node := value.producer()) is not None and node.op_type == "Constant":
        return _constant(node)
    return None if tensor is None else tensor.numpy()


def is_constant(node: onnx_ir.Node) -> bool:
    """Whether it is a Constant with a value that can be read."""
    return node.op_type == "Constant" and node.domain == "" and _constant(node) is not None


def _constant(node: onnx_ir.Node) -> np.ndarray | None:
    for name, attribute in node.attributes.items():
        match name:
            case "value":
                return attribute.as_tensor().numpy()
            case "value_int" | "value_ints":
                return np.array(attribute.value, np.int64)
            case "value_float" | "value_floats":
                return np.array(attribute.value, np.float32)
    return None


class _Reader:
    def __init__(self, graph: onnx_ir.Graph, weights: Collection[str]) -> None:
        self._weights = weights
        self._graph = graph
        self._known: dict[onnx_ir.Value, Any] = {value: ("input", at) for at, value in enumerate(graph.inputs)}
        self._found = Outline()

    def read(self) -> Outline:
        self._found.keys = list(self._nodes(self._graph))
        self._found.outputs = self._results(self._graph)
        return self._found

    def _nodes(self, graph: onnx_ir.Graph) -> Iterator[Key]:
        for node in graph:
            if is_constant(node):
                continue
            inputs = tuple(self._place(value, node, at) for at, value in enumerate(node.inputs))
            key = (node.domain, node.op_type, inputs, len(node.outputs), *self._attributes(node))
            for at, value in enumerate(node.outputs):
                self._known[value] = (len(self._known), at)
            yield key

    def _attributes(self, node: onnx_ir.Node) -> Iterator[Any]:
        for name, attribute in sorted(node.attributes.items()):
            if attribute.type == onnx_ir.AttributeType.GRAPH:
                body = attribute.as_graph()
                for value in body.inputs:
                    self._known[value] = (name, len(self._known))
                yield name, tuple(self._nodes(body)), tuple(self._results(body))
            elif attribute.type == onnx_ir.AttributeType.TENSOR:
                yield name, attribute.as_tensor().numpy().tobytes()
            else:
                yield name, str(attribute.value)

    def _results(self, graph: onnx_ir.Graph) -> list[Any]:
        return [self._place(value, graph, at) for at, value in enumerate(graph.outputs)]

    def _place(self, value: onnx_ir.Value | None, holder: onnx_ir.Node | onnx_ir.Graph, at: int) -> Any:
        """Where a value comes from: a weight by its name, any other constant by the number of its use."""
        if value is None:
            return None
        if value in self._known:
            return self._known[value]
        if value.name in self._weights and value.is_initializer():
            return "weight", value.name
        self._found.constants.append(Use(holder, at, value))
        return "constant", len(self._found.constants) - 1
