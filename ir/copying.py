"""Copies of graphs that share the weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import onnx_ir

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.scopes import scopes
from entrepot.ir.subgraphs import subgraphs, with_subgraphs


def copy_graphs(model: onnx_ir.Model) -> onnx_ir.Model:
    """A copy whose graphs can be changed freely, and whose nodes are in order; tensors are shared.

    Raises:
        ConversionError: Nodes depend on their own results, or refer to values that belong to no graph.
    """
    try:
        copy = model.clone()
    except RuntimeError:
        copy = _copied_in_order(model)
    copy.meta.update(model.meta)
    return copy


def _copied_in_order(model: onnx_ir.Model) -> onnx_ir.Model:
    """The copy of a model whose nodes may stand before those that they read from, which onnxruntime (1.31) takes."""
    try:
        with _sorted(model):
            return model.clone()
    except (RuntimeError, ValueError) as error:  # onnx_ir wraps what went wrong once per level
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise ConversionError(f"the graph cannot be copied: {cause}", hint="ep.load checks a graph") from error


@contextmanager
def _sorted(model: onnx_ir.Model) -> Iterator[None]:
    """A model with its nodes in order meanwhile: it is not ours to change."""
    graphs = [graph for scope in scopes(model) for graph in (scope, *_inside(scope))]
    before = [(graph, list(graph)) for graph in graphs]
    try:
        for scope in scopes(model):
            scope.sort()
        yield
    finally:
        for graph, nodes in before:
            graph.extend(nodes)


def _inside(scope: onnx_ir.Graph | onnx_ir.Function) -> Iterator[onnx_ir.Graph]:
    bodies = (body for node in scope for body in subgraphs(node))
    yield from with_subgraphs(*bodies)
