"""The cpu provider: NumPy kernels under generated Python source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from entrepot.runtime.became import became
from entrepot.runtime.emit import emit
from entrepot.runtime.lower import Lowering
from entrepot.runtime.merge import merged
from entrepot.runtime.plan import Block, Step, pruned
from entrepot.runtime.providers import Compiled, Setting
from entrepot.runtime.providers.cpu import bind
from entrepot.runtime.providers.cpu.absorb import absorbed
from entrepot.runtime.providers.cpu.coverage import reason_against
from entrepot.runtime.providers.cpu.fuse import fused
from entrepot.runtime.providers.cpu.reuse import reuse
from entrepot.runtime.providers.cpu.support import numpy_support


class CpuProvider:
    """Runs whole graphs, or parts of them, with NumPy."""

    name = "cpu"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._model = setting.hub.ir

    def supports(self, node: ir.Node) -> str:
        """Empty, or the reason this provider does not run ``node``."""
        return reason_against(node, self._model)

    def compile(self, part: ir.GraphView) -> Compiled:
        """Generated source for one part: its inputs in order to its outputs in order.

        Raises:
            UnsupportedOpError: Nodes have neither kernel nor function body; all of them are named.
        """
        limits = self._setting.limits
        lowering = Lowering(self._model.functions, bind.is_known, evaluate=bind.evaluate, limits=limits)
        block = merged(pruned(lowering.lower(part, self._model.graph.opset_imports)))
        block = fused(absorbed(block))
        bind_all(block, bind.bind)
        reuse(block)
        emitted = emit(block, numpy_support(limits))
        return Compiled(emitted.function, emitted, became(part, block, lowering.settled), emitted.locate)


def bind_all(block: Block, binder: Callable[[Step], Any]) -> None:
    """Give every step of a block, and of the blocks within it, its kernel."""
    for step in block.steps:
        for inner in step.blocks.values():
            bind_all(inner, binder)
        if not step.blocks and step.call is None:
            step.call = binder(step)
