"""The graphs of a model with the opsets in force in each, and what a pass may assume about a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import onnx_ir as ir

from entrepot.ir.inference import scope_types
from entrepot.ir.opset.names import Names
from entrepot.ir.opset.schemas import canonical, since
from entrepot.ir.opset.scopes import scopes
from entrepot.ir.subgraphs import subgraphs, with_subgraphs
from entrepot.ir.traits import traits_of
from entrepot.ir.typing.query import Types

_ANY_CONSTANT = 9


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


def typed_graphs(model: ir.Model) -> Iterator[tuple[ir.Graph, Types]]:
    """The same graphs, with what is known about their values."""
    for scope, types in scope_types(model).items():
        root = scope.graph if isinstance(scope, ir.Function) else scope
        for graph in [*with_subgraphs(root)]:  # as they were when the first was asked for
            yield graph, types


def is_pure(node: ir.Node, opsets: Mapping[str, int]) -> bool:
    """Whether a node repeats its results for the same inputs; false for operators that the standard does not define."""
    return traits_of(node).repeats and version_of(node, opsets) > 0


def version_of(node: ir.Node, opsets: Mapping[str, int]) -> int:
    """The since-version that gives a node its meaning; 0 for operators that the standard does not define."""
    domain = canonical(node.domain)
    return since(domain, node.op_type, node.version or opsets.get(domain, 0))


def has_references(node: ir.Node) -> bool:
    """Whether an attribute is taken from the call of the function that the node is in."""
    return any(attribute.is_ref() for attribute in node.attributes.values())


def may_write_constants(types: Types) -> bool:
    """Whether a Constant may hold integers: before opset 9 it held floating-point numbers only."""
    return types.opsets.get("", 0) >= _ANY_CONSTANT


def is_fixed(value: ir.Value | None) -> bool:
    """Whether a value is an initializer that a caller cannot replace."""
    return value is not None and value.is_initializer() and not value.is_graph_input() and value.const_value is not None


def alone_before(value: ir.Value | None, reader: ir.Node) -> ir.Node | None:
    """The standard operator in the reader's graph that computes ``value``, if nothing but one input reads that."""
    if value is None or len(value.uses()) != 1 or value.is_graph_output():
        return None
    node = value.producer()
    return None if node is None or node.domain or node.graph is not reader.graph or has_references(node) else node


def bypass(node: ir.Node, value: ir.Value) -> bool:
    """Let everything read ``value`` instead of the node's first output, and remove the node; whether that was possible.

    A graph output keeps its name: the node that computes ``value`` computes the output instead.
    """
    output, graph = node.outputs[0], node.graph
    assert graph is not None
    if output.is_graph_output():
        if not _may_be_renamed(value, graph):
            return False
        value.name, output.name = output.name, ""
        value.type = output.type or value.type
        value.shape = value.shape if output.shape is None else output.shape  # that of a scalar is false
        value.metadata_props.update(output.metadata_props)
    output.replace_all_uses_with(value, replace_graph_outputs=True)
    graph.remove(node, safe=True)
    return True


def replace(node: ir.Node, other: ir.Node) -> None:
    """Put a new node of one output where another was, under its names and with its metadata."""
    result, output, graph = other.outputs[0], node.outputs[0], node.graph
    assert graph is not None
    result.name, result.type, result.shape = output.name, output.type, output.shape
    result.metadata_props.update(output.metadata_props)
    other.name = node.name
    other.metadata_props.update(node.metadata_props)
    other.meta.update(node.meta)
    graph.insert_before(node, other)
    output.replace_all_uses_with(result, replace_graph_outputs=True)
    output.name = ""
    graph.remove(node, safe=True)


def write_constant(node: ir.Node, array: np.ndarray, what: str, names: Names) -> ir.Value:
    """A Constant before ``node``, for one of its inputs."""
    constant = ir.node("Constant", [], {"value": ir.tensor(array)})
    value = constant.outputs[0]
    value.name = constant.name = names.fresh(f"{node.outputs[0].name}_{what}")
    value.type, value.shape = ir.TensorType(ir.tensor(array).dtype), ir.Shape(array.shape)
    assert node.graph is not None
    node.graph.insert_before(node, constant)
    return value


def _may_be_renamed(value: ir.Value, graph: ir.Graph | ir.Function) -> bool:
    """Whether a node of this graph computes it, and it is not an output yet."""
    return value.producer() is not None and value.graph is graph and not value.is_graph_output()
