"""Long files are checked without making a graph of them, as far as they are plain.

Everything that does not depend on how nodes are connected is left to the reader of graphs, once for each kind of node:
tens of thousands of nodes are of a few dozen kinds. Whether something is as in an ordinary file is seen from what would
be written: a node, or a type, that would not come out as it went in is none. Whatever is wrong is left to the reader
to say, as is every file that is not plain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import onnx
import onnx_ir

from entrepot.ir.errors import EntrepotError
from entrepot.ir.io.build import check_header, read_opsets
from entrepot.ir.io.context import Context
from entrepot.ir.io.graphs import GraphReader, Kind, kind_of
from entrepot.ir.io.parsed import Parsed
from entrepot.ir.io.serialize import serialize_node
from entrepot.ir.io.tensors import TensorReader
from entrepot.ir.io.value_types import dtype_of, read_type, write_type

LONG = 1000
"""Nodes from which on a file is worth it."""

MOST_KINDS = 1000
"""Kinds of nodes beyond which it is not: reading them one by one takes as long as making the graph."""

MOST_BYTES = 1 << 26
"""Bytes of a parsed file beyond which holding on to it costs too much: its weights are held a second time."""

_UNUSUAL = ("functions", "training_info", "configuration")
_UNUSUAL_IN_GRAPH = ("sparse_initializer", "quantization_annotation")
_FIRST_WITH_FREE_INITIALIZERS = 4
"""Before, initializers were inputs, and a conversion has more to do than to look at nodes."""

_GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def survey(proto: onnx.ModelProto, context: Context, tensors: TensorReader) -> Parsed | None:
    """The file once it is known to be valid and plain, else ``None``: then it has to be read in full.

    Args:
        proto: The file; it must belong to the caller, and not change any more.
        context: Place and budget, as new.
        tensors: Reads tensors.
    """
    if len(proto.graph.node) < LONG or proto.ByteSize() > MOST_BYTES:
        return None
    try:
        return _Survey(proto, context, tensors).result()
    except EntrepotError:  # the reader says where
        return None


@dataclass(frozen=True)
class _Seen:
    """A kind of node, and how many bytes its attributes hold."""

    node: onnx_ir.Node
    nbytes: int


class _Survey:
    """One look at a file."""

    def __init__(self, proto: onnx.ModelProto, context: Context, tensors: TensorReader) -> None:
        check_header(proto, context)
        self._proto = proto
        self._context = context
        self._tensors = tensors
        self._reader = GraphReader(context, tensors, {})
        self._opsets = read_opsets(context, proto.opset_import)
        self._defined = {""}  # what is left out needs no producer
        self._kinds: dict[Kind, _Seen] = {}
        self._types: set[bytes] = set()

    def result(self) -> Parsed | None:
        """What was found, if the file is plain."""
        proto, graph = self._proto, self._proto.graph
        unusual = any(getattr(proto, name) for name in _UNUSUAL) or any(getattr(graph, n) for n in _UNUSUAL_IN_GRAPH)
        if unusual or proto.ir_version < _FIRST_WITH_FREE_INITIALIZERS or not graph.output:
            return None
        tensors = tuple(map(self._tensors.read, graph.initializer))
        plain = self._head_is_text() and self._values_are_plain(tensors) and self._nodes_are_plain(graph.node)
        if not plain or not all(info.name and info.name in self._defined for info in graph.output):
            return None
        self._proto.DiscardUnknownFields()
        return Parsed(
            proto, self._opsets, proto.ir_version, tensors, {kind: seen.node for kind, seen in self._kinds.items()},
            frozenset(dtype_of(self._context, number) for number in self._context.dtypes),
            self._context.path, self._context.limits,
        )  # fmt: skip

    def _head_is_text(self) -> bool:
        proto, graph, context = self._proto, self._proto.graph, self._context
        context.all_text(proto.producer_name, proto.producer_version, proto.domain, proto.doc_string)
        context.all_text(graph.name, graph.doc_string)
        context.texts(proto.metadata_props)
        context.texts(graph.metadata_props)
        return True

    def _values_are_plain(self, tensors: Iterable[onnx_ir.TensorProtocol]) -> bool:
        """Whether inputs and weights have names of their own, and every value a type that can be written as it is."""
        graph = self._proto.graph
        inputs, weights = [info.name for info in graph.input], [tensor.name or "" for tensor in tensors]
        if "" in inputs or "" in weights or len({*inputs}) < len(inputs) or len({*weights}) < len(weights):
            return False
        self._context.all_text(*inputs)
        self._defined.update(inputs, weights)
        if not all(info.type.WhichOneof("value") for info in graph.input):
            return False
        return all(
            self._is_plain_value(info) for infos in (graph.input, graph.value_info, graph.output) for info in infos
        )

    def _is_plain_value(self, info: onnx.ValueInfoProto) -> bool:
        self._context.all_text(info.name, info.doc_string)
        self._context.texts(info.metadata_props)
        kind = info.type.SerializeToString()
        if kind not in self._types:
            written = onnx.TypeProto()
            write_type(written, *read_type(self._context, info.type))
            if written != info.type:
                return False
            self._types.add(kind)
        return True

    def _nodes_are_plain(self, nodes: Iterable[onnx.NodeProto]) -> bool:
        context, defined, kinds = self._context, self._defined, self._kinds
        context.count_nodes(len(self._proto.graph.node))
        if len(self._proto.graph.node) > context.limits.expanded_nodes:
            return False
        for node in nodes:
            inputs, outputs = list(node.input), list(node.output)
            if not defined.issuperset(inputs):
                return False
            before = len(defined)
            defined.update(outputs)
            if len(defined) - before < len(outputs) - outputs.count("") or node.device_configurations:
                return False
            context.all_text(node.name, node.doc_string, *outputs)
            if node.metadata_props:
                context.texts(node.metadata_props)
            kind = kind_of(node)
            seen = kinds.get(kind)
            if seen is None:
                if len(kinds) == MOST_KINDS or not self._is_plain_kind(node, kind):
                    return False
            elif seen.nbytes:
                context.count_bytes(seen.nbytes, node.name)
        return True

    def _is_plain_kind(self, proto: onnx.NodeProto, kind: Kind) -> bool:
        if proto.domain == "ai.onnx" or any(attribute.type in _GRAPHS for attribute in proto.attribute):
            return False
        before = self._context.total_bytes
        node = self._reader.read_alone(proto, self._opsets)
        self._kinds[kind] = _Seen(node, self._context.total_bytes - before)
        written = serialize_node(node, self._opsets)
        return all(
            list(getattr(written, part)) == list(getattr(proto, part)) for part in ("input", "output", "attribute")
        )
