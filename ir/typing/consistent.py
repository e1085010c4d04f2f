"""Whether the operands of a node have types that its schema lets stand together."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import onnx_ir as ir

from entrepot.ir.opset.schemas import schema
from entrepot.ir.passes.graphs import typed_graphs, version_of
from entrepot.ir.typing.query import Types


def inconsistencies(model: ir.Model) -> Iterator[str]:
    """What speaks against each node whose operands of one type parameter differ in type."""
    for graph, types in typed_graphs(model):
        for node in graph:
            if not node.domain and version_of(node, types.opsets) and (why := _inconsistent(node, types)):
                yield why


def _inconsistent(node: ir.Node, types: Types) -> str:
    known = schema("", node.op_type, version_of(node, types.opsets))
    bound: dict[str, ir.DataType] = {}
    for at, value in enumerate(node.inputs):
        dtype = None if value is None else types.dtype(value)
        formal = known.inputs[min(at, len(known.inputs) - 1)] if known.inputs else None
        if dtype is None or formal is None or _is_mixed(formal):
            continue
        first = bound.setdefault(formal.type_str, dtype)
        if first is not dtype:
            name = node.name or (node.outputs[0].name if node.outputs else "")
            return f"node '{name}' ({node.op_type}) takes {first.name.lower()} and {dtype.name.lower()} as one type"
    return ""


def _is_mixed(formal: onnx.defs.OpSchema.FormalParameter) -> bool:
    """Whether it stands for several operands whose types may differ, as of a loop."""
    return formal.option == onnx.defs.OpSchema.FormalParameterOption.Variadic and not formal.is_homogeneous
