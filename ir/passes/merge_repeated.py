from __future__ import annotations

from collections.abc import Hashable, Mapping

import onnx_ir as ir

from entrepot.ir.passes.graphs import graphs, is_pure
from entrepot.ir.subgraphs import subgraphs

_LARGE = 1024
"""Bytes; larger constants are not compared."""

_FEW = 16
"""Whole numbers; fewer say where or how, and are no weights."""


class MergeRepeated(ir.passes.InPlacePass):
    """Compute once what several nodes of a graph compute from the same values.

    Before: ``a = Shape(x); b = Shape(x)``. After: ``a = Shape(x)``, with ``a`` wherever ``b`` was.
    A node that computes a graph output stays, and so does one that is random, carries a graph, or belongs to an
    unknown domain. Subgraphs and functions are covered, each by itself. What repeats only once it is inlined is
    merged when a session is planned (``runtime/planning/merge.py``).
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        merged = [_merge(graph, opsets) for graph, opsets in graphs(model)]
        return ir.passes.PassResult(model, modified=any(merged))


def _merge(graph: ir.Graph, opsets: Mapping[str, int]) -> bool:
    seen: dict[Hashable, ir.Node] = {}
    modified = False
    for node in list(graph):
        key = _key(node, opsets)
        twin = node if key is None else seen.setdefault(key, node)
        if twin is node or any(output.is_graph_output() for output in node.outputs):
            continue
        for mine, other in zip(node.outputs, twin.outputs, strict=True):
            mine.replace_all_uses_with(other)
        graph.remove(node, safe=True)
        modified = True
    return modified


def _key(node: ir.Node, opsets: Mapping[str, int]) -> Hashable | None:
    """Equal for nodes that must compute the same thing; ``None`` for a node that may not."""
    if any(True for _ in subgraphs(node)) or not is_pure(node, opsets) or _holds_large(node):
        return None
    try:
        attributes = tuple(sorted(map(_content, node.attributes.values())))
    except ir.serde.SerdeError:
        return None  # text that is not UTF-8
    made = tuple(bool(output.name) for output in node.outputs)
    return node.op_identifier(), node.version, tuple(map(_operand, node.inputs)), made, attributes


def _operand(value: ir.Value | None) -> Hashable:
    """The same for what is certainly equal: one value, or axes, places and sizes that are written twice."""
    tensor = None if value is None or value.is_graph_input() else ir.convenience.get_const_tensor(value)
    if tensor is None or tensor.dtype != ir.DataType.INT64 or tensor.size > _FEW:
        return id(value)
    return tuple(tensor.shape.numpy()), tensor.numpy().tobytes()


def _content(item: ir.Attr) -> bytes:
    if item.is_ref():
        return f"{item.name} is {item.ref_attr_name}".encode()
    return ir.serde.serialize_attribute(item).SerializeToString()


def _holds_large(node: ir.Node) -> bool:
    tensors = (
        item.value for item in node.attributes.values() if item.type == ir.AttributeType.TENSOR and not item.is_ref()
    )
    return any(tensor.nbytes > _LARGE for tensor in tensors)
