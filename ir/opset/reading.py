"""Whether a model means the same, word for word, at another opset."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import onnx_ir as ir

from entrepot.ir.opset.rules import route
from entrepot.ir.opset.schemas import CEILINGS, canonical, schema, since
from entrepot.ir.subgraphs import subgraphs

if TYPE_CHECKING:
    from entrepot.ir.model import Model


def reads_the_same(model: Model, opset: int) -> bool:
    """Whether no node would be rewritten on the way to ``opset``: only the number in the file differs.

    Both our table of steps and the schemas have to say so. Operators of other domains are not converted at all.

    Args:
        model: At any opset.
        opset: The ai.onnx version; other standard domains are looked at in their newest.
    """
    targets = CEILINGS | {"": opset}
    imports = {canonical(domain): version for domain, version in model.opsets.items()}
    if not _all_read_the_same(model.ir.graph, imports, targets):
        return False
    return all(
        _all_read_the_same(function, imports | _imports(function), targets) for function in model.ir.functions.values()
    )


def _imports(function: ir.Function) -> dict[str, int]:
    return {canonical(domain): version for domain, version in function.opset_imports.items()}


def _all_read_the_same(nodes: Iterable[ir.Node], imports: Mapping[str, int], targets: Mapping[str, int]) -> bool:
    for node in nodes:
        domain = canonical(node.domain)
        if domain in targets and not _keeps(domain, node.op_type, imports.get(domain, 1), targets[domain]):
            return False
        if not all(_all_read_the_same(graph, imports, targets) for graph in subgraphs(node)):
            return False
    return True


@functools.cache
def _versions(domain: str, op_type: str, have: int, want: int) -> tuple[int, int]:
    return since(domain, op_type, have), since(domain, op_type, want)


def _keeps(domain: str, op_type: str, have: int, want: int) -> bool:
    start, stop = _versions(domain, op_type, have, want)
    if start == stop:
        return bool(start)
    return bool(start and stop) and not route(domain, op_type, start, stop) and _extends(domain, op_type, start, stop)


@functools.cache
def _extends(domain: str, op_type: str, start: int, stop: int) -> bool:
    """Whether the newer schema has all that the older one has, with the same defaults."""
    older, newer = (schema(domain, op_type, version) for version in sorted((start, stop)))
    return len(older.inputs) <= len(newer.inputs) and all(
        name in newer.attributes
        and attribute.default_value.SerializeToString() == newer.attributes[name].default_value.SerializeToString()
        for name, attribute in older.attributes.items()
    )
