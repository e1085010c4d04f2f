"""Branches: If, and Case as a chain of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.flow.lists import TensorList
from entrepot.exporters.tensorflow.node import Node, known
from entrepot.exporters.tensorflow.table import translates


@translates("If", "StatelessIf", handles=True)
def branch(node: Node, build: Builder, condition: ir.Value, *operands: Any) -> Any:
    """One of two functions, only one of which is run."""
    return _one_of(node, build, _truth(node, build, condition), (node["then_branch"], node["else_branch"]), operands)


@translates("Case", "StatelessCase", handles=True)
def case(node: Node, build: Builder, index: ir.Value, *operands: Any) -> Any:
    """One of several functions; the last one for an index that is out of range."""
    return _case(node, build, index, node["branches"], operands, 0)


def _case(
    node: Node, build: Builder, index: ir.Value, functions: Sequence[str], operands: Sequence[Any], at: int
) -> Sequence[Any]:
    if len(functions) == 1:
        return node.walk.function(functions[0], build, operands)
    number = known(index)
    if number is not None:
        chosen = int(number) - at
        return node.walk.function(functions[chosen if 0 <= chosen < len(functions) else -1], build, operands)
    then, other = build.body("then"), build.body("else")
    taken = node.walk.function(functions[0], then, operands)
    rest = _case(node, other, index, functions[1:], operands, at + 1)
    return _joined(node, build, build.op("Equal", index, at), (then, taken), (other, rest))


def _truth(node: Node, build: Builder, condition: ir.Value) -> ir.Value:
    if node.dtype(0).kind == "O":
        return build.op("Not", build.op("Equal", condition, build.constant(np.array("", object), ir.DataType.STRING)))
    if node.shape(0) not in ((), None):
        condition = build.op("ReduceMax", build.cast(build.shape(condition), np.int64), keepdims=0)
    return build.cast(condition, np.bool_)


def _one_of(
    node: Node, build: Builder, condition: ir.Value, functions: tuple[str, str], operands: Sequence[Any]
) -> Sequence[Any]:
    truth = known(condition)
    if truth is not None:
        return node.walk.function(functions[0] if truth else functions[1], build, operands)
    then, other = build.body("then"), build.body("else")
    taken, rest = (
        node.walk.function(name, into, operands) for name, into in zip(functions, (then, other), strict=True)
    )
    return _joined(node, build, condition, (then, taken), (other, rest))


def _joined(
    node: Node,
    build: Builder,
    condition: ir.Value,
    then: tuple[Builder, Sequence[Any]],
    other: tuple[Builder, Sequence[Any]],
) -> Sequence[Any]:
    """The results of two bodies; what is no tensor is the same in both, or a list, whose items are joined."""
    pairs = list(zip(then[1], other[1], strict=True))
    lists = {at: pair for at, pair in enumerate(pairs) if isinstance(pair[0], TensorList) and pair[0] is not pair[1]}
    tensors = {at: pair for at, pair in enumerate(pairs) if isinstance(pair[0], ir.Value)}
    for at, pair in lists.items():
        if not isinstance(pair[1], TensorList):
            node.refuse("returns a list in one branch only")
        tensors[at] = pair[0].whole(node, then[0]), pair[1].whole(node, other[0])
    if any(pair[0] is not pair[1] for at, pair in enumerate(pairs) if at not in tensors):
        node.refuse("returns another variable in each branch")
    results: list[Any] = [pair[0] for pair in pairs]
    if tensors:
        graphs = [body.graph([pair[side] for pair in tensors.values()]) for side, (body, _) in enumerate((then, other))]
        made = build.op("If", condition, outputs=len(tensors), then_branch=graphs[0], else_branch=graphs[1])
        for at, value in zip(tensors, made if len(tensors) > 1 else (made,), strict=True):
            one, two = tensors[at]
            value.type = one.type
            value.shape = _common_shape(one, two)
            results[at] = pairs[at][0].holding(value) if at in lists else value
    return results


def _common_shape(one: ir.Value, two: ir.Value) -> ir.Shape | None:
    if one.shape is None or two.shape is None or len(one.shape) != len(two.shape):
        return None
    return ir.Shape([a if a == b else None for a, b in zip(one.shape, two.shape, strict=True)])
