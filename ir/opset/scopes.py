"""The scopes of a model, each with operator-set versions of its own: the main graph and the model-local functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import onnx_ir as ir

from entrepot.ir.opset.schemas import canonical

Scope: TypeAlias = ir.Graph | ir.Function


def scopes(model: ir.Model) -> tuple[Scope, ...]:
    """The main graph and every function."""
    return (model.graph, *model.functions.values())


def callers_first(model: ir.Model) -> list[Scope]:
    """The main graph, then every function after all that call it."""
    if not model.functions:
        return [model.graph]
    order: dict[Scope, None] = {}
    entered: set[Scope] = set()

    def visit(scope: Scope) -> None:
        entered.add(scope)
        called = {(node.domain, node.op_type, node.overload): None for node in scope.all_nodes()}
        for function in [model.functions[name] for name in called if name in model.functions]:
            if function not in entered:
                visit(function)
        order[scope] = None

    for scope in scopes(model):
        if scope not in entered:
            visit(scope)
    return list(reversed(order))


def is_there(imports: Iterable[Mapping[str, int]], targets: Mapping[str, int]) -> bool:
    """Whether scopes that import these versions are at those asked for."""
    return all(
        targets.get(canonical(domain), version) == version for opsets in imports for domain, version in opsets.items()
    )


def stamp(scope: Scope, targets: Mapping[str, int]) -> None:
    """Write the versions into what a scope imports."""
    imports = scope.opset_imports
    for domain in list(imports):
        if canonical(domain) in targets:
            imports[domain] = targets[canonical(domain)]
