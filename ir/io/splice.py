"""A long file in which other nodes stand for some of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import onnx
import onnx_ir

from entrepot.ir.io.context import Context
from entrepot.ir.io.excerpt import Excerpt
from entrepot.ir.io.external import DataFolder
from entrepot.ir.io.graphs import GraphReader, Kind, kind_of
from entrepot.ir.io.parsed import Parsed
from entrepot.ir.io.serialize import inline, says_anything, serialize_node, write_value
from entrepot.ir.io.tensors import TensorReader
from entrepot.ir.io.value_types import dtype_of
from entrepot.ir.subgraphs import subgraphs


def spliced(excerpt: Excerpt, opsets: Mapping[str, int], ir_version: int) -> Parsed | None:
    """The file with what its excerpt has become, or ``None`` where that is not plain any more.

    Args:
        excerpt: The part of the file that has been converted; whatever others read has its old name.
        opsets: Versions that the file has now.
        ir_version: Its format version now.

    Raises:
        EntrepotError: The new nodes would not be read.
    """
    return _Splice(excerpt, opsets, ir_version).result()


class _Splice:
    """One new file."""

    def __init__(self, excerpt: Excerpt, opsets: Mapping[str, int], ir_version: int) -> None:
        parsed = excerpt.parsed
        self._excerpt, self._opsets, self._ir_version = excerpt, dict(opsets), ir_version
        self._context = Context(parsed.path, parsed.limits)
        self._context.ir_version = ir_version
        folder = DataFolder(self._context, None, follow_links=False)
        self._reader = GraphReader(self._context, TensorReader(self._context, folder), {})
        self._kinds: dict[Kind, onnx_ir.Node] = dict(parsed.kinds)
        self._alike: list[onnx_ir.Node] = []
        self._nodes = excerpt.replacements()
        self._proto = onnx.ModelProto()

    def result(self) -> Parsed | None:
        """The new file."""
        parsed, proto = self._excerpt.parsed, self._proto
        if any(True for nodes in self._nodes for node in nodes for _ in subgraphs(node)):
            return None
        _copy(parsed.proto, proto, but=("graph", "opset_import"))
        _copy(parsed.proto.graph, proto.graph, but=("node",))
        proto.ir_version = self._ir_version
        for domain, version in self._opsets.items():
            proto.opset_import.add(domain=domain, version=version)
        self._write_nodes()
        if len(proto.graph.node) > parsed.limits.expanded_nodes:
            return None
        unread = self._unread()
        tensors = self._write_weights(unread)
        self._write_values(unread)
        used = set(self._alike)
        return Parsed(
            proto, self._opsets, self._ir_version, tensors,
            {kind: node for kind, node in self._kinds.items() if node in used}, self._alike,
            parsed.types.union(dtype_of(self._context, number) for number in self._context.dtypes),
            parsed.path, parsed.limits,
        )  # fmt: skip

    def _write_nodes(self) -> None:
        old, alike, target = self._excerpt.protos, self._excerpt.parsed.alike, self._proto.graph.node
        start = 0
        for at, nodes in zip((*self._excerpt.chosen, len(old)), (*self._nodes, ()), strict=True):
            target.extend(old[start:at])
            self._alike += alike[start:at]
            for node in nodes:
                written = serialize_node(node, self._opsets)
                kind = kind_of(written)
                if kind not in self._kinds:
                    self._kinds[kind] = self._reader.read_alone(written, self._opsets)
                target.append(written)
                self._alike.append(self._kinds[kind])
            start = at + 1
        self._context.count_nodes(len(target))

    def _write_weights(self, unread: AbstractSet[str]) -> tuple[onnx_ir.TensorProtocol, ...]:
        """Leave those out that nothing reads any more, and add what adapters wrote."""
        weights, tensors = self._proto.graph.initializer, self._excerpt.parsed.tensors
        _remove(weights, unread)
        there = {tensor.name for tensor in tensors}
        stored = self._excerpt.model.graph.initializers.items()
        new = {name: value.const_value for name, value in stored if name not in there and value.const_value is not None}
        for name, tensor in new.items():
            inline(weights.add(name=name), tensor)
        return (*[tensor for tensor in tensors if tensor.name not in unread], *new.values())

    def _unread(self) -> set[str]:
        """Weights that only replaced nodes read."""
        excerpt, graph = self._excerpt, self._excerpt.parsed.proto.graph
        needed = {*excerpt.read_outside, *[info.name for infos in (graph.input, graph.output) for info in infos]}
        were_read = {name for at in excerpt.chosen for name in excerpt.protos[at].input} - needed
        stored = excerpt.model.graph.initializers
        return {name for name in were_read if name in stored and not stored[name].uses()}

    def _write_values(self, unread: AbstractSet[str]) -> None:
        """What is known of the values that the new nodes make, and no more of those that are gone."""
        excerpt, graph = self._excerpt, self._proto.graph
        _remove(graph.value_info, {name for at in excerpt.chosen for name in excerpt.protos[at].output} | unread)
        values = {value.name or "": value for value in excerpt.model.graph.outputs}
        for info in graph.output:
            value = values.get(info.name)
            if value is not None:
                info.Clear()
                write_value(info, value)
        for output in (output for nodes in self._nodes for node in nodes for output in node.outputs):
            if output.name and not output.is_graph_output() and says_anything(output):
                write_value(graph.value_info.add(), output)


def _copy(message: Any, target: Any, *, but: Collection[str]) -> None:
    """Copy all fields but some: what is deleted afterwards would keep its memory."""
    for field, value in message.ListFields():
        if field.name in but:
            continue
        if field.is_repeated:
            getattr(target, field.name).MergeFrom(value)
        else:
            setattr(target, field.name, value)


def _remove(messages: Any, names: AbstractSet[str]) -> None:
    """Take those of these names out of a repeated field."""
    for index in reversed([index for index, message in enumerate(messages) if message.name in names]):
        del messages[index]
