"""Users' operators for providers that run none: a part of its own, in Python, between theirs."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.operators import is_defined
from entrepot.runtime.providers.cpu.provider import CpuProvider


class PythonProvider(CpuProvider):
    """The cpu provider, for nodes that users' operators are, or that hold some, and for no others."""

    name = "python"

    def supports(self, node: ir.Node) -> str:
        """Empty, or the reason it is not for this provider."""
        return super().supports(node) if is_defined(node, self._model) else "it is no operator of a user"
