"""Whether the operands of a node, and what its bodies return, have types that may stand together."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import onnx_ir as ir

from entrepot.ir.opset.schemas import schema
from entrepot.ir.passes.graphs import typed_graphs, version_of
from entrepot.ir.subgraphs import subgraphs
from entrepot.ir.typing.query import Types


def inconsistencies(model: ir.Model) -> Iterator[str]:
    """What speaks against each node whose operands of one type parameter, or results and those of a body, differ."""
    for graph, types in typed_graphs(model):
        for node in graph:
            if not node.domain and version_of(node, types.opsets):
                why = _inconsistent(node, types) or _unlike_body(node, types)
                if why:
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
            return f"{_name(node)} takes {first.name.lower()} and {dtype.name.lower()} as one type"
    return ""


def _unlike_body(node: ir.Node, types: Types) -> str:
    """Why a body does not fit its node: what one of them says of a result is not what the other does."""
    leading = 1 if node.op_type == "Loop" else 0  # whether it goes on
    for body in subgraphs(node):
        for outer, inner in zip(node.outputs, body.outputs[leading:], strict=False):
            one, two = types.dtype(outer), types.dtype(inner)
            if outer.name and one is not None and two is not None and one is not two:
                return f"{_name(node)} returns {one.name.lower()}, and its body {two.name.lower()}"
    return ""


def _name(node: ir.Node) -> str:
    return f"node '{node.name or (node.outputs[0].name if node.outputs else '')}' ({node.op_type})"


def _is_mixed(formal: onnx.defs.OpSchema.FormalParameter) -> bool:
    """Whether it stands for several operands whose types may differ, as of a loop."""
    return formal.option == onnx.defs.OpSchema.FormalParameterOption.Variadic and not formal.is_homogeneous
