"""The torch provider: torch's kernels under generated Python source, on the host or on a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.runtime import fuse
from entrepot.runtime.compilation import Target, compile_part
from entrepot.runtime.coverage import reason_against
from entrepot.runtime.device import Array, Placed
from entrepot.runtime.plan import Block
from entrepot.runtime.providers import Compiled, Setting
from entrepot.runtime.providers.cpu.provider import CpuProvider
from entrepot.runtime.providers.cpu.table import KERNELS as HOST_KERNELS
from entrepot.runtime.providers.torch import heap
from entrepot.runtime.providers.torch.small import is_small
from entrepot.runtime.providers.torch.table import KERNELS
from entrepot.runtime.support import backend_support

_LEFT_TO_HOST = frozenset(
    ("MaxRoiPool", "NonMaxSuppression", "RandomNormal", "RandomUniform", "RoiAlign", "TfIdfVectorizer")
)
"""Operators that go step by step as their data says, or that no input says the device of."""


def _rules_on_host() -> fuse.Rules:
    from entrepot.runtime.providers.torch.fuse import RULES

    return RULES


def _finish(block: Block) -> None:
    from entrepot.runtime.providers.torch.pieces import join
    from entrepot.runtime.providers.torch.reuse import reuse

    join(block)
    reuse(block)


class TorchProvider:
    """Runs whole graphs, or parts of them, with torch on the host."""

    name = "torch"
    where = "cpu"

    def __init__(self, setting: Setting) -> None:
        from entrepot.runtime.providers.torch.backend import TorchBackend
        from entrepot.runtime.providers.torch.device import TorchDevice

        if self.where == "cpu":
            heap.keep()
        self._setting = setting
        self.device = TorchDevice(self.where)
        self._placed = Placed(self.device)
        backend = TorchBackend(self.where)
        self._target = Target(
            replace(KERNELS, backend=lambda: backend),
            backend_support(backend, setting.limits),
            HOST_KERNELS,
            _rules_on_host() if self.where == "cpu" else fuse.RULES,
            device=self.device,
            place=self.place,
            finish=_finish if self.where == "cpu" else lambda block: None,
            left_to_host=_LEFT_TO_HOST,
        )

    @classmethod
    def available(cls) -> str:
        """Empty, or what is missing."""
        return "" if find_spec("torch") else "needs the library torch: pip install torch"

    def place(self, constant: np.ndarray[Any, Any]) -> Array:
        """A constant on the device; the same memory each time."""
        return self.device.keep(self._placed(constant))

    def supports(self, node: ir.Node) -> str:
        """Empty, or the reason this provider does not run ``node``."""
        return reason_against(node, self._setting.hub.ir, self._target.is_known)

    def compile(self, part: ir.GraphView) -> Compiled:
        """Generated source for one part: its inputs in order to its outputs in order.

        Raises:
            UnsupportedOpError: Nodes have neither kernel nor function body; all of them are named.
        """
        if self.where == "cpu" and is_small(part, self._setting.type_of):
            return self._compiled_for_numpy(part)
        compiled = compile_part(part, self._setting, self._target)
        return replace(compiled, run=without_gradients(compiled.run))

    def _compiled_for_numpy(self, part: ir.GraphView) -> Compiled:
        compiled = CpuProvider(self._setting).compile(part)
        return replace(
            compiled,
            how={node: f"{how}, NumPy's" for node, how in compiled.how.items()},
            on_host=frozenset(range(len(part.inputs))),
            made_on_host=frozenset(range(len(part.outputs))),
        )


def without_gradients(run: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
    """The same function, which notes nothing for a backward pass."""
    import torch

    def quiet(*inputs: Any) -> tuple[Any, ...]:
        with torch.inference_mode():
            return run(*inputs)

    return quiet
