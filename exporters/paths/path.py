"""What a model does at certain sizes, as a graph, and for which sizes that graph may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir

from entrepot.exporters.paths.expression import Expression

Sizes = Mapping[str, int]
"""A size for each symbol."""


@dataclass
class Path:
    """One capture.

    Attributes:
        graph: Its nodes; axes of its inputs carry symbols of groups, or are numbers where it fixed them.
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

    @property
    def fixed(self) -> frozenset[str]:
        """The symbols whose sizes the capture turned into constants."""
        found = (condition.specialised() for condition in self.conditions)
        return frozenset(each[0].text for each in found if each is not None and each[0].text.isidentifier())
