"""The graphs of a model with the opsets in force in each, and what a pass may assume about a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import onnx
import onnx_ir as ir

from entrepot.ir.opset.schemas import canonical, schema, since
from entrepot.ir.opset.scopes import scopes
from entrepot.ir.subgraphs import subgraphs

_RANDOM = onnx.defs.OpSchema.NodeDeterminism.NonDeterministic


def graphs(model: ir.Model) -> Iterator[tuple[ir.Graph, Mapping[str, int]]]:
    """The main graph, the body of every function, and every graph that a node carries."""
    for scope in scopes(model):
        imports = {**model.graph.opset_imports, **scope.opset_imports}
        opsets = {canonical(domain): version for domain, version in imports.items()}
        pending = [scope.graph if isinstance(scope, ir.Function) else scope]
        while pending:
            graph = pending.pop()
            yield graph, opsets
            pending.extend(body for node in graph for body in subgraphs(node))


def is_pure(node: ir.Node, opsets: Mapping[str, int]) -> bool:
    """Whether a node repeats its results for the same inputs; false for operators that the standard does not define."""
    domain = canonical(node.domain)
    version = since(domain, node.op_type, node.version or opsets.get(domain, 0))
    if not version:
        return False
    known: Any = schema(domain, node.op_type, version)  # onnx 1.23 leaves node_determinism out of its stubs
    return bool(known.node_determinism != _RANDOM)
