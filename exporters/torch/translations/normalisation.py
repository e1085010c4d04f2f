"""Batch statistics and softmax in another dtype, by formulas: torch.onnx (2.13) has them wrong."""

from __future__ import annotations

from typing import Any

import torch

from entrepot.exporters.torch.upstream import get_decompositions

aten = torch.ops.aten

_NORMS = (
    aten.native_batch_norm.default,
    aten._native_batch_norm_legit.default,  # noqa: SLF001 - what batch_norm becomes in training mode
    aten._native_batch_norm_legit_functional.default,  # noqa: SLF001 - what batch_norm becomes in training mode
    aten._native_batch_norm_legit.no_stats,  # noqa: SLF001 - what batch_norm becomes in training mode
)


def softmax(input: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> Any:
    """Computed in the dtype of the result."""
    return NotImplemented if dtype in (None, input.dtype) else input.to(dtype).softmax(dim)


def log_softmax(input: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> Any:
    """Computed in the dtype of the result."""
    return NotImplemented if dtype in (None, input.dtype) else input.to(dtype).log_softmax(dim)


DECOMPOSITIONS: dict[Any, Any] = {
    **{operator: formula for operator, formula in get_decompositions(_NORMS).items() if operator in _NORMS},
    aten.softmax.int: softmax,
    aten.log_softmax.int: log_softmax,
}
