"""Batch statistics and softmax in another dtype, which torch.onnx (2.13) has wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir
import torch
from onnxscript import opset20

from entrepot.exporters.torch.upstream import get_decompositions

op: Any = opset20
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


def translate_batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
) -> tuple[Any, Any, Any]:
    """What is normalised, and no statistics: in evaluation mode torch returns them empty on a processor."""
    weight = _filled(1.0, running_mean) if weight is None else weight
    bias = _filled(0.0, running_mean) if bias is None else bias
    found = op.BatchNormalization(input, weight, bias, running_mean, running_var, epsilon=eps, momentum=1.0 - momentum)
    empty = op.Constant(value=onnx_ir.tensor([], dtype=input.dtype))
    return found, empty, empty


def _filled(number: float, like: Any) -> Any:
    return op.Expand(op.Constant(value=onnx_ir.tensor(number, dtype=like.dtype)), op.Shape(like))


DECOMPOSITIONS: dict[Any, Any] = {
    **{operator: formula for operator, formula in get_decompositions(_NORMS).items() if operator in _NORMS},
    aten.native_layer_norm.default: native_layer_norm,
    aten.softmax.int: softmax,
    aten.log_softmax.int: log_softmax,
}
TRANSLATIONS = {aten._native_batch_norm_legit_no_training.default: translate_batch_norm}  # noqa: SLF001 - as above
