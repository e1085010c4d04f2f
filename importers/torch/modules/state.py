"""What is where in a module that is being made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import onnx_ir as ir

from entrepot.importers.torch.dtypes import FLOATS
from entrepot.importers.torch.layers.layer import Array, Layer
from entrepot.importers.torch.modules.scopes import Path
from entrepot.importers.torch.modules.tree import Node
from entrepot.importers.torch.steps.planning import Plan
from entrepot.importers.torch.text.sizes import Sizes
from entrepot.runtime.planning.plan import Block, Step, Value


@dataclass
class State:
    """What is where.

    Attributes:
        plan: The steps.
        tree: The modules.
        layers: For steps that are layers: the layer and its path.
        held: For constants that steps read directly: the path of the module, and the name in it.
        moved: For those of them that are read in another arrangement: what makes it, such as ``.T``.
        scopes: The path that each step belongs to.
        containers: Paths below which the names of weights tell of further modules.
        light: Steps that depend on nothing but sizes and numbers.
        floating: The type that follows ``half()``: that of the model's weights, if it has one.
    """

    plan: Plan
    tree: Node = field(default_factory=Node)
    layers: dict[Step, tuple[Layer, Path]] = field(default_factory=dict)
    held: dict[Value, tuple[Path, str]] = field(default_factory=dict)
    scopes: dict[Step, Path] = field(default_factory=dict)
    containers: frozenset[Path] = frozenset()
    light: set[Step] = field(default_factory=set)
    floating: ir.DataType | None = None
    sizes: dict[Value, Sizes] = field(default_factory=dict)
    moved: dict[Value, str] = field(default_factory=dict)

    def is_parameter(self, value: Value | None) -> bool:
        """Whether a constant is trained: one of the file's weights, not a number that it computes with."""
        array = None if value is None else value.constant
        if value is None or not isinstance(array, np.ndarray) or ir.DataType.from_numpy(array.dtype) not in FLOATS:
            return False
        name = self.source(value)
        if self.plan.roles:
            return self.plan.roles.get(name) == "parameter"
        return name in self.plan.weights and ((array.ndim > 0 and array.size > 1) or "." in name)

    def is_buffer(self, value: Value) -> bool:
        """Whether the file says that a constant was a buffer."""
        return self.plan.roles.get(self.source(value)) in ("buffer", "unsaved")

    def is_cut(self, value: Value | None) -> bool:
        """Whether integers were made of floats."""
        return value in self.plan.cut

    def matrices_of(self, name: str) -> list[tuple[Array, Path]]:
        """What layers have made of a weight of the file, and their paths."""
        return [
            (layer.tensors["weight"], path)
            for layer, path in self.layers.values()
            if self.named(layer.source) == name and "weight" in layer.tensors and layer.tensors["weight"].ndim == 2
        ]

    def named(self, name: str) -> str:
        """The name of the weight that a constant of this name is, or is a rearrangement of."""
        return self._named.get(name, name)

    @cached_property
    def _named(self) -> dict[str, str]:
        return {value.name: origin.name for value, origin in self.plan.origins.items()}

    def source(self, value: Value) -> str:
        """The name of the weight that a constant is, or is a rearrangement of."""
        return self.plan.origins.get(value, value).name


def every_step(block: Block) -> Iterator[Step]:
    """The steps of a block, and of the blocks within it."""
    for step in block.steps:
        yield step
        for inner in step.blocks.values():
            yield from every_step(inner)
