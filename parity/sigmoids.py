"""Sigmoid, which onnxruntime (1.31) computes to so many digits after the point, however small the result is.

It is off by 1.7e-7 anywhere between 0 and 1: by a hundredth of a probability of 1e-5, by all of one of 1e-8, and of a
state of ten thousand that it closes a gate on, something is left. Written with ``Exp`` it is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir

from entrepot.ir.copying import copy_graphs
from entrepot.ir.model import Model

WHY = "computes Sigmoid to seven digits after the point, which is little where results are small or factors are large"
OFF = 2.0**-22
"""How far off a result may be."""
_PART = 1e-3
"""Of the largest element: what such results make of others, away from edge values."""
_RAISES_ALL = 12
"""The opset from which on ``Pow`` takes an exponent of another type than the base, which need not be known then."""


def without_sigmoids(model: Model) -> Model | None:
    """The same model with ``1 / (1 + exp(-x))`` in place of each Sigmoid; ``None`` if it has none."""
    if model.ir.graph.opset_imports.get("", 0) < _RAISES_ALL:
        return None
    found = copy_graphs(model.ir)
    graphs = [found.graph, *(function.graph for function in found.functions.values())]
    every = [node for graph in graphs for node in onnx_ir.traversal.RecursiveGraphIterator(graph)]
    nodes = [node for node in every if node.op_type == "Sigmoid" and not node.domain]
    for node in nodes:
        _spell_out(node)
    return Model(found) if nodes else None


def is_slight(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> bool:
    """Whether outputs are apart by no more than small results of Sigmoid may be, or a small part of their largest."""
    return all(_is_near(value, actual.get(name)) for name, value in expected.items())


def _is_near(expected: Any, actual: Any) -> bool:
    if not (isinstance(expected, np.ndarray) and isinstance(actual, np.ndarray) and expected.shape == actual.shape):
        return False
    if expected.dtype.kind != "f" or not expected.size:
        return bool(np.array_equal(expected, actual))
    apart = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    return bool(apart.max() <= max(OFF, _PART * np.abs(expected).max()))


def _spell_out(node: onnx_ir.Node) -> None:
    (x,), (old,) = node.inputs, node.outputs
    zero = onnx_ir.node("Constant", [], {"value": onnx_ir.tensor(np.zeros((), np.float32))})
    one = onnx_ir.node("Pow", [x, zero.outputs[0]])
    negative = onnx_ir.node("Neg", [x])
    power = onnx_ir.node("Exp", [negative.outputs[0]])
    total = onnx_ir.node("Add", [power.outputs[0], one.outputs[0]])
    last = onnx_ir.node("Reciprocal", [total.outputs[0]])
    for each, word in ((zero, "zero"), (one, "one"), (negative, "negative"), (power, "power"), (total, "total")):
        each.outputs[0].name = f"{old.name}/{word}"
    new, graph = last.outputs[0], node.graph
    assert graph is not None
    graph.insert_before(node, [zero, one, negative, power, total, last])
    new.name, new.type, new.shape = old.name, old.type, old.shape
    old.replace_all_uses_with(new, replace_graph_outputs=True)
    graph.remove(node)
