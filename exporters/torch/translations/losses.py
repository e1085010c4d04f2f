"""Losses by their formulas, for models that return a loss."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from entrepot.exporters.torch.upstream import is_uncounted


def cross_entropy(  # the signature is torch's
    input: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> torch.Tensor:
    """Cross entropy of logits; torch.onnx (2.13) has it for rows of classes, of which it drops the smoothing."""
    sharp: dict[str, Any] = {
        "weight": weight,
        "size_average": size_average,
        "reduce": reduce,
        "ignore_index": ignore_index,
    }
    named, rows = not target.is_floating_point(), input.dim() > 1
    if size_average is not None or reduce is not None or (named and rows and not label_smoothing):
        return F.cross_entropy(input, target, reduction=reduction, label_smoothing=label_smoothing, **sharp)
    axis = min(input.dim() - 1, 1)
    logs, classes = input.log_softmax(axis), input.shape[axis]
    weighted = logs if weight is None else logs * weight.reshape((-1,) + (1,) * (input.dim() - axis - 1))
    if not named:
        target = target * (1 - label_smoothing) + label_smoothing / classes
        loss = -(weighted * target).sum(axis)
        return loss.sum() / (input.numel() // classes) if reduction == "mean" else _reduced(loss, reduction)
    counts = target != ignore_index
    index = target.masked_fill(~counts, 0).to(torch.int64)
    scale = counts.to(input.dtype) if weight is None else torch.where(counts, weight[index], 0.0)
    if rows:
        loss = F.cross_entropy(input, target, reduction="none", **sharp)
    else:
        loss = torch.where(counts, -weighted.gather(axis, index.unsqueeze(axis)).squeeze(axis), 0.0)
    if label_smoothing:
        even = torch.where(counts, weighted.sum(axis), 0.0)
        loss = loss * (1 - label_smoothing) - even * (label_smoothing / classes)
    return loss.sum() / scale.sum() if reduction == "mean" else _reduced(loss, reduction)


def linear_cross_entropy(  # the signature is torch's
    input: torch.Tensor,
    linear_weight: torch.Tensor,
    target: torch.Tensor,
    *,
    linear_bias: torch.Tensor | None = None,
    weight: torch.Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> torch.Tensor:
    """Cross entropy of a linear layer; the options say how torch saves memory on the way."""
    logits = F.linear(
        input, linear_weight.flatten(0, -2), None if linear_bias is None else linear_bias.flatten()
    ).reshape(*input.shape[:-1], *linear_weight.shape[:-1])
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )


def gaussian_nll_loss(  # the signature is torch's
    input: torch.Tensor,
    target: torch.Tensor,
    var: torch.Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> torch.Tensor:
    """Negative log likelihood of normal distributions, without torch's check that no variance is negative."""
    if not isinstance(var, torch.Tensor):
        var = torch.full_like(input, var)
    if var.dim() == input.dim() - 1:
        var = var.unsqueeze(-1)
    var = var.clamp(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var) + (0.5 * math.log(2 * math.pi) if full else 0.0)
    return loss.mean() if reduction == "mean" else _reduced(loss, reduction)


def multi_margin_loss(  # the signature is torch's
    input: torch.Tensor,
    target: torch.Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: torch.Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    """The classes that come within a margin of the right one; NaN does not, which torch.export (2.13) forgets."""
    if size_average is not None or reduce is not None:
        return F.multi_margin_loss(input, target, p, margin, weight, size_average, reduce, reduction)
    rows, index = torch.atleast_2d(input), torch.atleast_1d(target).unsqueeze(1)
    short = margin - rows.gather(1, index) + rows
    counts = (short > 0) & (torch.arange(rows.shape[1], device=rows.device) != index)
    each = torch.where(counts, short if p == 1 else short * short, 0.0)
    loss = (each if weight is None else each * weight[index]).mean(1)
    return loss.mean() if reduction == "mean" else _reduced(loss.reshape(target.shape), reduction)


def mse_loss(input: torch.Tensor, target: torch.Tensor, reduction: int = 1) -> Any:
    """The mean of squares that may be none; torch.onnx (2.13) has a form of its own."""
    squares = (input - target).square()
    return squares.mean() if reduction == 1 and is_uncounted(squares.numel()) else NotImplemented


def _reduced(loss: torch.Tensor, reduction: str) -> torch.Tensor:
    return loss.sum() if reduction == "sum" else loss


DECOMPOSITIONS = {torch.ops.aten.mse_loss.default: mse_loss}
REPLACEMENTS = {
    F.cross_entropy: cross_entropy,
    F.linear_cross_entropy: linear_cross_entropy,
    F.gaussian_nll_loss: gaussian_nll_loss,
    F.multi_margin_loss: multi_margin_loss,
}
