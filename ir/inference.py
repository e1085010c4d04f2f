"""Types and shapes of every value of a model, inferred where the file does not say; nothing is written to the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir

from entrepot.ir.model import Model, ValueSpec, describe_value
from entrepot.ir.opset.schemas import canonical
from entrepot.ir.opset.scopes import Scope, callers_first, scopes
from entrepot.ir.opset.values import Known
from entrepot.ir.subgraphs import nodes_with_subgraphs, subgraphs
from entrepot.ir.typing.query import Types
from entrepot.ir.typing.spec import Spec


@dataclass(frozen=True)
class NodeInfo:
    """A node and what it works on.

    Attributes:
        graph: Where it is: the name of the main graph or function, and the bodies around it.
        name: Its name; empty if it has none.
        op_type: Its operator.
        domain: The operator's domain; empty for ai.onnx.
        inputs: What it reads; ``None`` for an optional input that is left out.
        outputs: What it computes; ``None`` for an optional output that is left out.
    """

    graph: str
    name: str
    op_type: str
    domain: str
    inputs: tuple[ValueSpec | None, ...]
    outputs: tuple[ValueSpec | None, ...]


def list_nodes(model: Model) -> list[NodeInfo]:
    """Every node in graph order: those of the main graph, with their bodies after them, and of each function once."""
    types = scope_types(model.ir)
    found: list[NodeInfo] = []
    for scope in scopes(model.ir):
        name = f"{scope.domain}::{scope.name}" if isinstance(scope, onnx_ir.Function) else scope.name or "main"
        found.extend(_nodes(scope, name, types[scope]))
    return found


def _nodes(graph: Scope, place: str, types: Types) -> Iterator[NodeInfo]:
    for node in graph:
        inputs = tuple(None if value is None else spec_of(value, types) for value in node.inputs)
        outputs = tuple(spec_of(value, types) if value.name else None for value in node.outputs)
        yield NodeInfo(place, node.name or "", node.op_type, node.domain, inputs, outputs)
        for body in subgraphs(node):
            yield from _nodes(body, f"{place} > {body.name or node.op_type}", types)


def spec_of(value: onnx_ir.Value, types: Types) -> ValueSpec:
    """A value with what is known about it."""
    found = types.spec(value)
    return describe_value(value.name or "", found.type, found.shape)


def scope_types(model: onnx_ir.Model) -> dict[Scope, Types]:
    """Answers for the main graph and for each function, whose inputs are what all its calls agree on."""
    calls: dict[tuple[str, str, str], list[list[Spec]]] = {}
    found: dict[Scope, Types] = {}
    for scope in callers_first(model):
        imports = {**model.graph.opset_imports, **scope.opset_imports}
        opsets = {canonical(domain): version for domain, version in imports.items()}
        types = found[scope] = Types(Known(model.ir_version), opsets, model.functions)
        if isinstance(scope, onnx_ir.Function):
            types.assume_call(scope, calls.get(scope.identifier(), ()))
        for node in nodes_with_subgraphs(scope):
            if not node.domain:
                types.carry(node)
        for node in scope.all_nodes() if model.functions else ():
            name = (node.domain, node.op_type, node.overload)
            if name in model.functions:
                calls.setdefault(name, []).append([types.spec(value) for value in node.inputs])
    return found
