"""What a model does at certain sizes, as a graph, and for which sizes that graph may hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_ir

from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.paths.expression import Expression

Sizes = Mapping[str, int]
"""A size for each symbol."""


@dataclass
class Path:
    """One capture.

    Attributes:
        graph: Its nodes; axes of its inputs carry the symbols of the groups, or are numbers where the capture fixed them.
        sizes: The sizes that it was captured at.
        conditions: What the capture relied on. Where they hold, the graph is what the model does.
        weights: Names of the initializers that are the same in every capture.
        numbers: As of ``Captured``.
    """

    graph: onnx_ir.Model
    sizes: Sizes
    conditions: list[Expression]
    weights: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()

    def holds(self, sizes: Sizes) -> bool:
        """Whether the conditions hold."""
        return all(condition(sizes) for condition in self.conditions)

    def fixed(self, groups: Sequence[Group]) -> frozenset[str]:
        """The symbols of the groups that the capture fixed."""
        return frozenset(group.symbol for group in groups if isinstance(_dim(self.graph, min(group.axes)), int))


def _dim(graph: onnx_ir.Model, axis: Axis) -> int | onnx_ir.SymbolicDim:
    shape = graph.graph.inputs[axis[0]].shape
    assert shape is not None
    return shape[axis[1]]
