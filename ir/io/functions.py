"""Model-local functions: their names, and how large a file becomes when every call is expanded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import onnx
import onnx_ir

from entrepot.ir.io.attributes import AttributeReader
from entrepot.ir.io.context import Context
from entrepot.ir.io.graphs import FunctionId, GraphReader

_DEEPEST = 100
"""Functions that call each other; what works on them, onnx included, follows the calls by recursion."""


@dataclass(frozen=True)
class Size:
    """Nodes of one body, and how often it calls each function."""

    nodes: int
    calls: Mapping[FunctionId, int]


def identifiers(context: Context, protos: Iterable[onnx.FunctionProto]) -> dict[FunctionId, onnx.FunctionProto]:
    """The functions of a file by identifier, before their bodies are read."""
    functions: dict[FunctionId, onnx.FunctionProto] = {}
    for proto in protos:
        domain, name = context.text(proto.domain), context.text(proto.name)
        if not name:
            raise context.error("function without a name")
        identifier = ("" if domain == "ai.onnx" else domain, name, context.text(proto.overload))
        if identifier in functions:
            raise context.error(f"function {describe(identifier)} is defined twice")
        functions[identifier] = proto
    return functions


def read_function(
    context: Context,
    proto: onnx.FunctionProto,
    identifier: FunctionId,
    graphs: GraphReader,
    attributes: AttributeReader,
    opsets: dict[str, int],
    infos: Iterable[onnx.ValueInfoProto],
) -> onnx_ir.Function:
    """One function with its attributes and their defaults."""
    domain, name, overload = identifier
    body = graphs.read_body(proto, opsets, [*infos, *proto.value_info])
    declared = [attributes.read(attribute) for attribute in proto.attribute_proto]
    declared += [onnx_ir.Attr(context.text(name), onnx_ir.AttributeType.UNDEFINED, None) for name in proto.attribute]
    if len({attribute.name for attribute in declared}) != len(declared):
        raise context.error("function that declares an attribute twice")
    return onnx_ir.Function(domain, name, overload, graph=body, attributes=declared)


def check_expansion(context: Context, main: Size, functions: Mapping[FunctionId, Size]) -> None:
    """Refuse functions that call themselves, and models that grow past the limit when calls are expanded.

    Each function is counted once, so that a small file that expands to billions of nodes is refused at once.
    """
    totals: dict[FunctionId, int] = {}
    depths: dict[FunctionId, int] = {}
    for root in functions:
        _count(context, root, functions, totals)
    for called in totals:  # callees come first
        depths[called] = 1 + max((depths[inner] for inner in functions[called].calls), default=0)
        if depths[called] > _DEEPEST:
            raise context.error(f"calls of functions are nested more than {_DEEPEST} levels deep")
    total = main.nodes + sum(count * totals[called] for called, count in main.calls.items())
    if total > context.limits.expanded_nodes:
        raise context.over(
            f"the model has more than {context.limits.expanded_nodes} nodes once its functions are expanded",
            "expanded_nodes",
        )


def _count(
    context: Context, root: FunctionId, functions: Mapping[FunctionId, Size], totals: dict[FunctionId, int]
) -> None:
    """Fill ``totals`` for a function and all it calls, with an explicit stack: chains may be thousands long."""
    ceiling = context.limits.expanded_nodes + 1  # numbers past the limit need not be exact
    path: dict[FunctionId, None] = {}
    stack = [root]
    while stack:
        current = stack[-1]
        size = functions[current]
        missing = [called for called in size.calls if called not in totals]
        if current not in totals and not missing:
            total = size.nodes + sum(count * totals[called] for called, count in size.calls.items())
            totals[current] = min(total, ceiling)
        if current in totals:
            path.pop(current, None)
            stack.pop()
            continue
        path[current] = None
        circular = next((called for called in missing if called in path), None)
        if circular is not None:
            raise context.error(f"function {describe(circular)} calls itself through {describe(current)}")
        stack.append(missing[0])


def describe(identifier: FunctionId) -> str:
    """``'domain::name'``, with the overload if there is one."""
    domain, name, overload = identifier
    return f"'{domain}::{name}{':' + overload if overload else ''}'"
