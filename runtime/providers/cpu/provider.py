"""The cpu provider: NumPy kernels under generated Python source."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.runtime.blas import choice
from entrepot.runtime.compilation import Target, compile_part
from entrepot.runtime.device import HOST, Array
from entrepot.runtime.dividing.coverage import reason_against
from entrepot.runtime.providers import Compiled, Setting
from entrepot.runtime.providers.cpu.fuse import RULES
from entrepot.runtime.providers.cpu.reuse import reuse
from entrepot.runtime.providers.cpu.support import numpy_support
from entrepot.runtime.providers.cpu.table import KERNELS


class CpuProvider:
    """Runs whole graphs, or parts of them, with NumPy."""

    name = "cpu"
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
        """Generated source for one part: its inputs in order to its outputs in order.

        Raises:
            UnsupportedOpError: Nodes have neither kernel nor function body; all of them are named.
        """
        target = Target(KERNELS, numpy_support(self._setting.limits), KERNELS, RULES, finish=reuse)
        return replace(compile_part(part, self._setting, target), remark=lambda: choice().remark)
