"""Nodes that fail where something does not hold: a graph has no other way to raise an error.

Every runtime refuses to reshape one element into two, so a condition becomes
``Reshape([0], [1 + Cast(Not(condition))])``, in a node named after it. Its result, a zero, is added to the shape that
something is reshaped to, so that no optimiser can remove it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir

_NEEDS = "needs "


def says_what_it_needs(node: onnx_ir.Node) -> bool:
    """Whether a node is one of these that may fail."""
    return node.op_type == "Reshape" and (node.name or "").startswith(_NEEDS)


class CheckWriter:
    """Writes such nodes; who uses it puts them into the graph.

    Attributes:
        nodes: What was written, in order.
    """

    def __init__(self, graph: onnx_ir.Graph) -> None:
        self.nodes: list[onnx_ir.Node] = []
        self._taken = {value.name for node in graph.all_nodes() for value in node.outputs} | set(graph.initializers)

    def __call__(self, op_type: str, *inputs: onnx_ir.Value, name: str = "", **attributes: Any) -> onnx_ir.Value:
        """Write a node of one result."""
        node = onnx_ir.node(op_type, list(inputs), attributes)
        node.name = name or f"check/{len(self.nodes)}"
        result = node.outputs[0]
        result.name = self._fresh("check")
        self.nodes.append(node)
        return result

    def constant(self, number: int) -> onnx_ir.Value:
        """A vector of one number."""
        return self("Constant", value=onnx_ir.tensor(np.array([number], np.int64)))

    def zero_unless(self, broken: onnx_ir.Value, text: str) -> onnx_ir.Value:
        """A zero, from a node that fails where ``broken`` is true, and says what it needs."""
        excess = self("Cast", broken, to=onnx_ir.DataType.INT64)
        return self("Reshape", self.constant(0), self("Add", excess, self.constant(1)), name=f"{_NEEDS}{text}")

    def total(self, zeros: Sequence[onnx_ir.Value]) -> onnx_ir.Value:
        """The sum of several zeros, itself one."""
        total = zeros[0]
        for zero in zeros[1:]:
            total = self("Add", total, zero)
        return total

    def guarded(self, value: onnx_ir.Value, zero: onnx_ir.Value) -> onnx_ir.Value:
        """A value reshaped to its own shape, plus a zero."""
        checked = self("Reshape", value, self("Add", self("Shape", value), zero), name=f"check/{value.name}")
        checked.shape, checked.type = value.shape, value.type
        return checked

    def _fresh(self, wish: str) -> str:
        name = next(name for name in _numbered(wish) if name not in self._taken)
        self._taken.add(name)
        return name


def _numbered(name: str) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"{name}_{number}"
