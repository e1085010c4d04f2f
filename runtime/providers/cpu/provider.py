"""The cpu provider: NumPy kernels under generated Python source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from entrepot.ir.limits import Limits
from entrepot.runtime.emit import Emitted, emit
from entrepot.runtime.lower import Lowering
from entrepot.runtime.plan import Block, Step, pruned
from entrepot.runtime.providers.cpu import bind
from entrepot.runtime.providers.cpu.support import numpy_support


@dataclass
class CpuProvider:
    """Runs whole graphs, or parts of them, with NumPy.

    Attributes:
        model: The model at the hub's opset that the parts are of.
        limits: Bounds on inlining and on loops.
    """

    model: ir.Model
    limits: Limits = field(default_factory=Limits)
    name: str = "cpu"

    def supports(self, node: ir.Node) -> str:
        """Empty, or the reason this provider does not run ``node``."""
        return ""

    def compile(self, part: ir.Graph | ir.GraphView, overridden: frozenset[str] = frozenset()) -> Emitted:
        """Generated source for one part: its inputs in order to its outputs in order."""
        lowering = Lowering(
            self.model.functions, bind.is_known, evaluate=bind.evaluate, limits=self.limits, overridden=overridden
        )
        block = pruned(lowering.lower(part, self.model.graph.opset_imports))
        bind_all(block, bind.bind)
        return emit(block, numpy_support(self.limits))


def bind_all(block: Block, binder: Callable[[Step], Any]) -> None:
    """Give every step of a block, and of the blocks within it, its kernel."""
    for step in block.steps:
        for inner in step.blocks.values():
            bind_all(inner, binder)
        if not step.blocks:
            step.call = binder(step)
