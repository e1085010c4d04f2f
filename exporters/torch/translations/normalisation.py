"""Batch statistics and softmax in another dtype, by formulas: torch.onnx (2.13) has them wrong."""

from __future__ import annotations

from collections.abc import Sequence
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


def native_layer_norm(input: torch.Tensor, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    """With mean and spread of halves as halves."""
    if input.dtype not in (torch.float16, torch.bfloat16):
        return NotImplemented
    axes = list(range(-len(normalized_shape), 0))
    x = input.to(torch.float32)
    mean = x.mean(axes, keepdim=True)
    scale = ((x - mean).square().mean(axes, keepdim=True) + eps).rsqrt()
    found = torch.nn.functional.layer_norm(input, normalized_shape, weight, bias, eps)
    return found, mean.to(input.dtype), scale.to(input.dtype)


DECOMPOSITIONS: dict[Any, Any] = {
    **{operator: formula for operator, formula in get_decompositions(_NORMS).items() if operator in _NORMS},
    aten.native_layer_norm.default: native_layer_norm,
    aten.softmax.int: softmax,
    aten.log_softmax.int: log_softmax,
}
