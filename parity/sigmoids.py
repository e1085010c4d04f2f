"""Sigmoid, which onnxruntime (1.31) computes to so many digits after the point, however small the result is.

It is off by 1.7e-7 anywhere between 0 and 1: by a hundredth of a probability of 1e-5, by all of one of 1e-8, and of a
state of ten thousand that it closes a gate on, something is left. Written with ``Exp`` it is exact.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import onnx_ir

from entrepot.ir.copying import copy_graphs
from entrepot.ir.model import Model

OFF = 2.0**-22
"""How far off it may be."""
_VIEWS = ("Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
_LAID_OUT = (*_VIEWS, "Expand", "Gather", "GatherElements", "GatherND", "Slice", "Split", "Tile")
WHY = "computes Sigmoid to seven digits after the point, which is little where results are small or factors are large"
_RAISES_ALL = 12
"""The opset from which on ``Pow`` takes an exponent of another type than the base, which need not be known then."""


def sigmoids(model: onnx_ir.Model) -> frozenset[str]:
    """The outputs whose elements all come from Sigmoid as they are."""
    return frozenset(str(value.name) for value in model.graph.outputs if _is_sigmoid(value))


def without_what_is_off(
    names: Collection[str], expected: Mapping[str, Any], actual: Mapping[str, Any]
) -> dict[str, Any]:
    """The outputs of a model, with elements of some taken from the source that may be off by as much as they are."""
    return {name: _settled(expected.get(name), value) if name in names else value for name, value in actual.items()}


def _settled(expected: Any, actual: Any) -> Any:
    if not (isinstance(expected, np.ndarray) and isinstance(actual, np.ndarray) and expected.shape == actual.shape):
        return actual
    if not expected.dtype == actual.dtype == np.float32:
        return actual
    return np.where(np.abs(actual - expected) <= OFF, expected, actual)


def _is_sigmoid(value: onnx_ir.Value) -> bool:
    found, waiting, seen = False, [value], set[int]()
    while waiting:
        node = waiting.pop().producer()
        if node is None or node.domain:
            return False
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.op_type == "Sigmoid":
            found = True
        elif node.op_type == "Concat":
            waiting += [each for each in node.inputs if each is not None]
        elif node.op_type in _LAID_OUT and node.inputs[0] is not None:
            waiting.append(node.inputs[0])
        else:
            return False
    return found


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
