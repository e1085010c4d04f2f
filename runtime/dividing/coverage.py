"""Whether a provider with kernels of its own runs a node, told before anything is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import onnx_ir as ir

from entrepot.ir.contributed.table import find
from entrepot.ir.operators import ask, missing
from entrepot.ir.subgraphs import subgraphs
from entrepot.ir.table import OpKey
from entrepot.ir.traits import traits_of

Known = Callable[[OpKey], bool]
"""Whether there is a kernel for an operator."""


def reason_against(node: ir.Node, model: ir.Model, known: Known, calls: tuple[ir.Function, ...] = ()) -> str:
    """Empty when a kernel, a function or a schema's function body runs the node, else why none does."""
    function = model.functions.get(node.op_identifier())
    if function is not None:
        if function in calls:
            return f"function {function.name} calls itself"
        return _first_reason(function, model, known, (*calls, function))
    opset = model.graph.opset_imports.get(node.domain) or 1
    ask(node.domain)
    if not onnx.defs.has(node.op_type, opset, node.domain):
        return "" if find(node.domain, node.op_type) is not None else missing(node)
    return _no_kernel(node, opset, known) or "".join(
        [reason for graph in subgraphs(node) if (reason := _first_reason(graph, model, known, calls))][:1]
    )


def _first_reason(nodes: ir.Graph | ir.Function, model: ir.Model, known: Known, calls: tuple[ir.Function, ...]) -> str:
    for inner in nodes:
        reason = reason_against(inner, model, known, calls)
        if reason:
            return f"{reason} ({inner.op_type} inside)"
    return ""


def _no_kernel(node: ir.Node, opset: int, known: Known) -> str:
    if traits_of(node).control_flow or (node.domain == "" and node.op_type == "Constant"):
        return ""
    schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
    if known(OpKey(node.domain, node.op_type, schema.since_version)):
        return ""
    bodies: Any = schema  # onnx's stub lacks what follows
    if bodies.has_function or bodies.has_context_dependent_function:
        return ""
    return f"no kernel for version {schema.since_version}, and its schema has no function body"
