"""Axes of reductions, counted from the front: from the end, onnxruntime (1.31) leaves an empty tensor as it is."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx_ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.graphs import has_references, typed_graphs, write_constant
from entrepot.ir.typing.query import Types

_AXES = 1


def count_axes_from_the_front(model: onnx_ir.Model, weights: Collection[str]) -> None:
    """Make negative axes of reductions positive, where the rank is known.

    Before: ``ReduceSum(x of rank 2, [-1])``. After: ``ReduceSum(x, [1])``. The same for ArgMax and ArgMin.
    """
    names = Names(model)
    for graph, types in typed_graphs(model):
        for node in [node for node in graph if not node.domain and not has_references(node)]:
            rank = _rank(node, types)
            if rank is None:
                continue
            if node.op_type in ("ArgMax", "ArgMin"):
                _turn_attribute(node, rank)
            elif node.op_type.startswith("Reduce"):
                _turn_input(node, rank, types, weights, names)
                _turn_attributes(node, rank)


def _rank(node: onnx_ir.Node, types: Types) -> int | None:
    shape = types.shape(node.inputs[0]) if node.inputs else None
    return None if shape is None else len(shape)


def _turn_attribute(node: onnx_ir.Node, rank: int) -> None:
    axis = node.attributes.get_int("axis", 0)
    if axis < 0:
        node.attributes["axis"] = onnx_ir.AttrInt64("axis", axis + rank)


def _turn_attributes(node: onnx_ir.Node, rank: int) -> None:
    axes = node.attributes.get_ints("axes", [])
    if any(axis < 0 for axis in axes):
        node.attributes["axes"] = onnx_ir.AttrInt64s("axes", [axis % rank for axis in axes])


def _turn_input(node: onnx_ir.Node, rank: int, types: Types, weights: Collection[str], names: Names) -> None:
    value = node.inputs[_AXES] if len(node.inputs) > _AXES else None
    axes = None if value is None or value.name in weights else types.known.array(value)
    if axes is not None and bool((axes < 0).any()):
        turned = np.where(axes < 0, axes + rank, axes).astype(np.int64)
        node.replace_input_with(_AXES, write_constant(node, turned, "axes", names))
