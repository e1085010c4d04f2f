"""Logarithms of sizes, as an operator: torch.export (2.13) takes no program with the function that sizes have."""

from __future__ import annotations

import math
from typing import Any

import torch

from entrepot.exporters.torch.upstream import disable_proxy_modes_tracing, sym_log2

torch.library.define("entrepot::logarithm", "(Scalar size, float base) -> Scalar")


def _logarithm(size: Any, base: float) -> Any:
    if not isinstance(size, torch.SymInt | torch.SymFloat):
        return math.log2(size) / math.log2(base)
    with disable_proxy_modes_tracing():
        return sym_log2(torch.sym_float(size)) / math.log2(base)


torch.library.impl("entrepot::logarithm", "CompositeExplicitAutograd", _logarithm)
torch.library.register_fake("entrepot::logarithm", _logarithm)


def logarithm(size: Any, base: float = 2.0) -> Any:
    """The logarithm of a size that varies."""
    return torch.ops.entrepot.logarithm(size, base)
