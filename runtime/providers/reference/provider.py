"""The reference provider: the same operator tables, node by node, nothing folded, every value observable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from entrepot.runtime.became import became
from entrepot.runtime.binding import bind_all
from entrepot.runtime.coverage import reason_against
from entrepot.runtime.lower import Lowering
from entrepot.runtime.plan import pruned
from entrepot.runtime.providers import Compiled, Setting
from entrepot.runtime.providers.cpu.support import numpy_support
from entrepot.runtime.providers.cpu.table import KERNELS
from entrepot.runtime.providers.reference.interpret import Interpreter


class ReferenceProvider:
    """Slow, strict and transparent: what other providers are compared with."""

    name = "reference"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._model = setting.hub.ir
        self.observe: Callable[[str, Any], None] | None = None

    def supports(self, node: ir.Node) -> str:
        """Empty, or the reason this provider does not run ``node``."""
        return reason_against(node, self._model, KERNELS.is_known)

    def compile(self, part: ir.GraphView) -> Compiled:
        """An interpreter of the part."""
        limits = self._setting.limits
        lowering = Lowering(self._model.functions, KERNELS.is_known, limits=limits)
        block = pruned(lowering.lower(part, self._model.graph.opset_imports))
        bind_all(block, KERNELS.bind_plain)
        interpreter = Interpreter(block, numpy_support(limits), self._report)
        return Compiled(interpreter.run, how=became(part, block, lowering.settled), locate=interpreter.locate)

    def _report(self, name: str, value: Any) -> None:
        if self.observe is not None:
            self.observe(name, value)
