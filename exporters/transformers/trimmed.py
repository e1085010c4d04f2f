"""Graphs of a package without what passes between them unread."""

from __future__ import annotations

from collections.abc import Collection

from onnx_ir.passes import common

from entrepot.ir.model import Model


def without_unread(model: Model, names: Collection[str]) -> Model:
    """The graph without those of some inputs that nothing in it reads."""
    graph = model.ir.clone()
    kept = [each for each in graph.graph.inputs if each.name not in names or each.uses() or each.is_graph_output()]
    graph.graph.inputs[:] = kept
    return Model(graph, report=model.report)


def with_outputs(model: Model, names: Collection[str]) -> Model:
    """The graph with some of its outputs alone, and what computes these."""
    graph = model.ir.clone()
    graph.graph.outputs[:] = [each for each in graph.graph.outputs if each.name in names]
    common.RemoveUnusedNodesPass()(graph)
    return Model(graph, report=model.report)
