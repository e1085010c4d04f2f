"""exp and log where the textbook formula loses digits or overflows.

W. Kahan's trick: the rounding of ``1 + x`` is undone by what it does to a function that is nearly linear there.
"""

from __future__ import annotations

import math
from typing import Any

import onnx_ir
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from onnxscript import opset20

from entrepot.exporters.torch.rewriting.environment import hint
from entrepot.exporters.torch.translations.precision import floating
from entrepot.exporters.torch.upstream import aten_softplus

aten = torch.ops.aten
op: Any = opset20


@floating
def log1p(input: torch.Tensor) -> torch.Tensor:
    """log(1 + x), as exact for small x as for large."""
    shifted = input + 1
    kept = shifted - 1
    corrected = shifted.log() * (input / torch.where(kept == 0, 1.0, kept))
    plain = torch.where(shifted.isinf(), shifted.log(), corrected)
    return torch.where(kept == 0, input, plain)


@floating
def expm1(input: torch.Tensor) -> torch.Tensor:
    """exp(x) - 1, as exact for small x as for large: tanh(x / 2) keeps the digits, and bounds nothing."""
    return (input * 0.5).tanh() * (input.exp() + 1)


@floating
def logaddexp(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """log(exp(a) + exp(b)), without overflow."""
    larger, smaller = torch.maximum(input, other), torch.minimum(input, other)
    most = torch.finfo(larger.dtype).max
    return larger + softplus(smaller - larger.clamp(-most, most))  # equal infinities have no difference


@floating
def logaddexp2(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The same to base 2."""
    return _largest_plus(input, other, lambda gap: log1p(gap.exp2()) / math.log(2))


@floating
def log_sigmoid(input: torch.Tensor) -> torch.Tensor:
    """log(1 / (1 + exp(-x)))."""
    return -softplus(-input)


def softplus(input: torch.Tensor) -> torch.Tensor:
    """log(1 + exp(x)), which no runtime lacks but onnxruntime (1.31) in double precision."""
    if input.dtype == torch.float64:
        return input.clamp(min=0) + log1p((-input.abs()).exp())
    return F.softplus(input)


def _log_sigmoid_forward(input: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return log_sigmoid(input), input.new_zeros(0)  # the second is for the gradient


def binary_cross_entropy_with_logits(
    input: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    pos_weight: torch.Tensor | None = None,
    reduction: int = 1,
) -> torch.Tensor:
    """-(t log s(x) + (1 - t) log s(-x)), s being the sigmoid."""
    scale: Any = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    loss: torch.Tensor = (1 - target) * input - scale * log_sigmoid(input)
    loss = loss if weight is None else loss * weight
    return _reduced(loss, reduction)


def soft_margin_loss(input: torch.Tensor, target: torch.Tensor, reduction: int = 1) -> torch.Tensor:
    """log(1 + exp(-t x)), of which torch lets the power overflow."""
    loss: torch.Tensor = log1p((-target * input).exp())
    return _reduced(loss, reduction)


def _largest_plus(input: torch.Tensor, other: torch.Tensor, rest: Any) -> torch.Tensor:
    larger = torch.maximum(input, other)
    gap = torch.where(input == other, 0.0, -(input - other).abs())  # the distance between two equal infinities is 0
    return torch.where(larger.isinf(), larger, larger + rest(gap))


def translate_softplus(self: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """Without the bound beyond which torch takes a number itself, where single precision makes no difference."""
    if beta == 1 and threshold >= _ITSELF and self.dtype != onnx_ir.DataType.DOUBLE:
        return op.Softplus(self)
    return aten_softplus(self, float(beta), float(threshold))


def translate_logsumexp(self: Any, dim: Any, keepdim: bool = False) -> Any:
    """ReduceLogSumExp, which in onnxruntime (1.31) subtracts no maximum where the first element is minus infinity."""
    if not self.shape:
        return op.Identity(self)
    kind = self.dtype
    if kind in _SHORT:
        return op.Cast(_log_of_sum(op.Cast(self, to=_SINGLE), _SINGLE, dim, keepdim), to=kind)
    return _log_of_sum(self, kind, dim, keepdim)


def logsumexp(input: torch.Tensor, dim: Any, keepdim: bool = False) -> torch.Tensor:
    """In steps where a size depends on data: torch (2.13) asks whether there is anything."""
    if not input.is_floating_point() or all(hint(size) is not None for size in input.shape):
        return torch.logsumexp(input, dim, keepdim)
    largest = input.amax(dim, keepdim=True)
    base = torch.where(largest.isfinite(), largest, 0.0)
    result = (input - base).exp().sum(dim, keepdim=True).log() + base
    return result if keepdim else result.squeeze(dim)


def _log_of_sum(x: Any, kind: onnx_ir.DataType, dim: Any, keepdim: bool) -> Any:
    """After the largest element of a row less a number whose exponential is nothing beside it, if there is one axis."""
    axes = [dim] if isinstance(dim, int) else list(dim)
    if len(axes) == 1:
        first = op.Sub(op.ReduceMax(x, axes, keepdims=1), op.Constant(value=onnx_ir.tensor(_NOTHING, dtype=kind)))
        return op.ReduceLogSumExp(op.Concat(first, x, axis=axes[0]), axes, keepdims=int(keepdim))
    lowest = op.Constant(value=onnx_ir.tensor(float(kind.min), dtype=kind))
    result = op.ReduceLogSumExp(op.Max(x, lowest), axes, keepdims=int(keepdim))
    largest = op.ReduceMax(x, axes, keepdims=int(keepdim))  # a row of the lowest number is not one of minus infinities
    return op.Where(op.LessOrEqual(result, lowest), largest, result)


_NOTHING = 200.0
"""exp(-200) is less than half of the last digit of 1, also in double precision, and 0 in single."""
_SINGLE, _SHORT = onnx_ir.DataType.FLOAT, (onnx_ir.DataType.FLOAT16, onnx_ir.DataType.BFLOAT16)
_ITSELF = 18.0
"""From here on log(1 + exp(-x)) is less than half of the last digit of a float32."""


def _reduced(loss: torch.Tensor, reduction: int) -> torch.Tensor:
    """By torch's numbers: 0 none, 1 mean, 2 sum."""
    if reduction == 0:
        return loss
    return loss.mean() if reduction == 1 else loss.sum()


DECOMPOSITIONS = {
    aten.log1p.default: log1p,
    aten.expm1.default: expm1,
    aten.logaddexp.default: logaddexp,
    aten.logaddexp2.default: logaddexp2,
    aten.log_sigmoid.default: log_sigmoid,
    aten.log_sigmoid_forward.default: _log_sigmoid_forward,
    aten.binary_cross_entropy_with_logits.default: binary_cross_entropy_with_logits,
    aten.soft_margin_loss.default: soft_margin_loss,
}
TRANSLATIONS = {aten.softplus.default: translate_softplus, aten.logsumexp.default: translate_logsumexp}
REPLACEMENTS = {torch.logsumexp: logsumexp, torch.Tensor.logsumexp: logsumexp, torch.special.logsumexp: logsumexp}
