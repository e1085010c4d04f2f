"""Several graphs of one model, each right for some sizes, as one graph that asks which of them to run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.paths.expression import Expression
from entrepot.exporters.paths.merging import symbolic_inputs
from entrepot.exporters.paths.path import Path
from entrepot.exporters.paths.writing import Writer
from entrepot.ir.copying import copy_graphs


def joined(paths: Sequence[Path], conditions: Sequence[list[Expression]], groups: Sequence[Group]) -> onnx_ir.Model:
    """The first path where its conditions hold, else the second, and so on.

    Args:
        paths: Results of the same number, types and ranks.
        conditions: For each path but the last.
        groups: The axes of the inputs that vary.
    """
    *others, last = paths
    model = copy_graphs(last.graph)
    symbolic_inputs(model, groups)
    for at, (path, holding) in reversed(list(enumerate(zip(others, conditions, strict=True)))):
        _branch_off(model, copy_graphs(path.graph), holding, groups, path, f"path{at}_")
    return model


def _branch_off(
    model: onnx_ir.Model,
    other: onnx_ir.Model,
    holding: list[Expression],
    groups: Sequence[Group],
    path: Path,
    prefix: str,
) -> None:
    """Make everything in ``model`` the else-branch of an If whose then-branch is ``other``."""
    graph = model.graph
    _adopt(graph, other.graph, path.weights, prefix)
    outputs = [_result(mine, theirs) for mine, theirs in zip(graph.outputs, other.graph.outputs, strict=True)]
    otherwise, then = _taken_out(graph, "else_branch"), _taken_out(other.graph, "then_branch")
    sizes = {
        group.symbol: (graph.inputs[min(group.axes)[0]], min(group.axes)[1])
        for group in groups
        if group.formula is None
    }
    writer = Writer(graph, sizes)
    condition = writer.condition(holding)
    writer.place()
    node = onnx_ir.node("If", [condition], {"then_branch": then, "else_branch": otherwise}, outputs=outputs)
    graph.append(node)
    graph.outputs.clear()
    graph.outputs.extend(outputs)


def _adopt(graph: onnx_ir.Graph, other: onnx_ir.Graph, weights: frozenset[str], prefix: str) -> None:
    """Let ``other`` read the inputs and initializers of ``graph``, and give it names that are not used there."""
    for theirs, mine in zip(other.inputs, graph.inputs, strict=True):
        theirs.replace_all_uses_with(mine, replace_graph_outputs=True)
    for name, value in list(other.initializers.items()):
        del other.initializers[name]
        if name in weights and name in graph.initializers:
            value.replace_all_uses_with(graph.initializers[name], replace_graph_outputs=True)
        else:
            value.name = name if name in weights else f"{prefix}{name}"
            graph.initializers.add(value)
    for value in _produced(other):
        value.name = f"{prefix}{value.name}"


def _produced(graph: onnx_ir.Graph) -> Iterator[onnx_ir.Value]:
    for node in onnx_ir.traversal.RecursiveGraphIterator(graph):
        yield from node.outputs
        for attribute in node.attributes.values():
            if attribute.type == onnx_ir.AttributeType.GRAPH:
                yield from attribute.as_graph().inputs


def _taken_out(graph: onnx_ir.Graph, name: str) -> onnx_ir.Graph:
    """The nodes of a graph as a body that reads everything else from outside."""
    nodes = list(graph)
    for node in nodes:
        graph.remove(node)
    outputs: list[onnx_ir.Value] = []
    for value in graph.outputs:
        if value.producer() not in nodes or value in outputs:
            passed = onnx_ir.node("Identity", [value])
            passed.outputs[0].name = f"{value.name}_{name}_{len(outputs)}"
            passed.outputs[0].type = value.type
            nodes.append(passed)
            outputs.append(passed.outputs[0])
        else:
            outputs.append(value)
    graph.outputs.clear()
    return onnx_ir.Graph([], outputs, nodes=nodes, name=name)


def _result(value: onnx_ir.Value, other: onnx_ir.Value) -> onnx_ir.Value:
    """A result of the If: its shape is what both branches share."""
    shape = None
    if value.shape is not None and other.shape is not None:
        pairs = zip(value.shape, other.shape, strict=True)
        shape = onnx_ir.Shape([mine if mine == theirs else None for mine, theirs in pairs])
    return onnx_ir.Value(name=f"{value.name}_joined", shape=shape, type=value.type)
