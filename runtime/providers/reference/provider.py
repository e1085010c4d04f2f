"""The reference provider: the same operator tables, node by node, nothing folded, every value observable."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.runtime.binding import bind_all
from entrepot.runtime.device import HOST, Array
from entrepot.runtime.dividing.coverage import reason_against
from entrepot.runtime.planning.became import became
from entrepot.runtime.planning.lower import Lowering
from entrepot.runtime.planning.plan import pruned
from entrepot.runtime.providers import Compiled, Setting
from entrepot.runtime.providers.cpu.support import numpy_support
from entrepot.runtime.providers.cpu.table import KERNELS
from entrepot.runtime.providers.reference.interpret import Interpreter, located


class ReferenceProvider:
    """Slow, strict and transparent: what other providers are compared with."""

    name = "reference"
    device = HOST

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._model = setting.hub.ir

    @staticmethod
    def available() -> str:
        """Always: it needs NumPy alone."""
        return ""

    def place(self, constant: np.ndarray[Any, Any]) -> Array:
        """The constant itself."""
        return constant

    def supports(self, node: ir.Node) -> str:
        """Empty, or the reason this provider does not run ``node``."""
        return reason_against(node, self._model, KERNELS.is_known)

    def compile(self, part: ir.GraphView) -> Compiled:
        """An interpreter of the part."""
        limits = self._setting.limits
        lowering = Lowering(self._model.functions, KERNELS.is_known, limits=limits)
        block = pruned(lowering.lower(part, self._model.graph.opset_imports))
        bind_all(block, KERNELS.bind_plain)
        interpreter = Interpreter(block, numpy_support(limits))
        return Compiled(
            partial(interpreter.run, None),
            how=became(part, block, lowering.settled),
            locate=located,
            observed=interpreter.run,
        )
