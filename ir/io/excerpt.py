"""Some nodes of a long file as a graph. What they read, and what that is made of, is made when somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir

from entrepot.ir.io.context import Context
from entrepot.ir.io.graphs import describe
from entrepot.ir.io.parsed import Parsed

_OURS = "entrepot.excerpt"
"""Domain of the nodes that stand for the rest of the file."""


class Later(onnx_ir.Value):
    """A value whose producer is made when it is asked for.

    Args:
        name: Its name.
        at: The position of its producer in the file.
        produce: Makes the producer.
    """

    def __init__(self, name: str, at: int, produce: Callable[[int], object]) -> None:
        super().__init__(name=name)
        self.at = at
        self.pending: Callable[[int], object] | None = produce

    def producer(self) -> onnx_ir.Node | None:
        """The node that produces it."""
        if self.pending is not None:
            self.pending(self.at)
        return super().producer()


class Excerpt:
    """A graph of the chosen nodes of a file. One node stands for all others that read what these make.

    Args:
        parsed: The file.
        chosen: Positions of nodes, in order.

    Attributes:
        parsed: The file.
        chosen: Positions of nodes, in order.
        model: The chosen nodes, each of them followed by one that marks its end, and the inputs of the file.
        nodes: The chosen nodes.
        protos: All nodes of the file.
        read_outside: The names that other nodes read.
        exits: Those of them that chosen nodes make.
        stated: The values whose types the file states.
    """

    def __init__(self, parsed: Parsed, chosen: Sequence[int]) -> None:
        graph = parsed.proto.graph
        self.parsed, self.chosen = parsed, chosen
        self._chosen = frozenset(chosen)
        self._context = Context(parsed.path, parsed.limits)
        self.protos = list(graph.node)
        rest = [(at, node) for at, node in enumerate(self.protos) if at not in self._chosen]
        self._positions = {name: at for at, node in rest for name in node.output if name}
        self.read_outside = {name for _, node in rest for name in node.input}
        inner, outputs = (*graph.value_info, *graph.input), graph.output
        self._stated = [{info.name: info for info in infos} for infos in (inner, outputs)]
        self.stated = frozenset(name for infos in self._stated for name in infos)
        self._weights = {tensor.name or "": tensor for tensor in parsed.tensors}
        self._values: dict[str, onnx_ir.Value] = {}
        self.exits: dict[str, int] = {}
        self._graph = onnx_ir.Graph([], [], nodes=[], opset_imports=dict(parsed.opsets), name=graph.name or None)
        self.model = onnx_ir.Model(self._graph, ir_version=parsed.ir_version)
        self._graph.inputs.extend(self._make(info.name) for info in graph.input)
        self.nodes = [self._node(at, self._outputs(at)) for at in chosen]
        self._assemble()

    def _assemble(self) -> None:
        """Put the chosen nodes into the graph, and note which of what they make is read by others."""
        made = [output for node in self.nodes for output in node.outputs]
        crossing = [value for value in made if value.name in self.read_outside]
        self.exits = {value.name or "": index for index, value in enumerate(crossing)}
        self._graph.outputs.extend(v for v in made if v.name in self._stated[1])
        marks = [onnx_ir.Node(_OURS, "Mark", [], num_outputs=0, name="") for _ in self.nodes]
        self._exit = onnx_ir.Node(_OURS, "Exit", crossing, num_outputs=0, name="")
        self._graph.extend(node for pair in zip(self.nodes, marks, strict=True) for node in pair)

    def value(self, name: str) -> onnx_ir.Value:
        """The value of a name, as it is now for the nodes that are not chosen."""
        index = self.exits.get(name)
        if index is not None:
            value = self._exit.inputs[index]
            assert value is not None
            return value
        found = self._values.get(name)
        return self._make(name) if found is None else found

    def states(self, name: str) -> bytes:
        """All that the file says about the type of a value that a node makes."""
        return b"|".join(infos[name].type.SerializeToString() for infos in self._stated if name in infos)

    def renamed(self) -> bool:
        """Whether something that others read has another name now."""
        return any(self.value(name).name != name for name in self.exits)

    def replacements(self) -> list[list[onnx_ir.Node]]:
        """What stands for each of the chosen nodes now."""
        found: list[list[onnx_ir.Node]] = [[]]
        for node in self._graph:
            if node.domain == _OURS:
                found.append([])
            else:
                found[-1].append(node)
        return found[:-1]

    def _make(self, name: str) -> onnx_ir.Value:
        at = self._positions.get(name)
        value = onnx_ir.Value(name=name) if at is None else Later(name, at, self._produce)
        self._values[name] = value
        for infos in self._stated:
            if name in infos:
                describe(self._context, value, infos[name])
        if at is None and (tensor := self._weights.get(name)) is not None:
            value.type = value.type or onnx_ir.TensorType(tensor.dtype)
            value.shape = value.shape or tensor.shape  # type: ignore[assignment]
            value.const_value = tensor
            self._graph.initializers.add(value)
        return value

    def _produce(self, at: int) -> None:
        self._node(at, self._outputs(at))

    def _outputs(self, at: int) -> list[onnx_ir.Value]:
        outputs = [self.value(name) if name else onnx_ir.Value(name="") for name in self.protos[at].output]
        for value in outputs:
            if isinstance(value, Later):
                value.pending = None
        return outputs

    def _node(self, at: int, outputs: Sequence[onnx_ir.Value]) -> onnx_ir.Node:
        proto, like = self.protos[at], self.parsed.alike[at]
        return onnx_ir.Node(
            like.domain, like.op_type, [self.value(name) if name else None for name in proto.input],
            tuple(like.attributes.data.values()), overload=like.overload, outputs=outputs, name=proto.name,
            doc_string=proto.doc_string or None, metadata_props=self._context.texts(proto.metadata_props) or None,
        )  # fmt: skip
