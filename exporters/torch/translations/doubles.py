"""float64 with all its digits: ONNX keeps parameters of operators in float32, and torch.onnx (2.13) numbers too.

Nor has onnxruntime (1.31) all operators in it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from entrepot.exporters.torch.upstream import get_decompositions

aten = torch.ops.aten

_BY_FORMULA = (
    aten.addmm.default,
    aten.baddbmm.default,
    aten.celu.default,
    aten.elu.default,
    aten.hardsigmoid.default,
    aten.hardtanh.default,
    aten.leaky_relu.default,
    aten.selu.default,
    aten.softplus.default,
)
"""What has parameters that are attributes in ONNX; torch has a formula for each."""

IN_DOUBLE_ONLY: set[Callable[..., Any]] = set()
"""Decompositions that leave an operator whole whose first operand is not in float64."""


def _in_double_only(formula: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(formula)
    def decomposition(input: Any, *args: Any, **how: Any) -> Any:
        double = isinstance(input, torch.Tensor) and input.dtype == torch.float64
        return formula(input, *args, **how) if double else NotImplemented

    IN_DOUBLE_ONLY.add(decomposition)
    return decomposition


@_in_double_only
def add(input: torch.Tensor, other: Any, *, alpha: float = 1) -> Any:
    """``input + alpha * other``."""
    return NotImplemented if alpha == 1 else input + alpha * other


@_in_double_only
def sub(input: torch.Tensor, other: Any, *, alpha: float = 1) -> Any:
    """``input - alpha * other``."""
    return NotImplemented if alpha == 1 else input - alpha * other


@_in_double_only
def prelu(input: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """``max(input, 0) + weight * min(input, 0)`` with a weight for each channel: onnxruntime has no such operator."""
    slope = weight.reshape(-1, *[1] * (input.dim() - 2)) if input.dim() > 1 else weight.reshape(())
    return torch.where(input > 0, input, slope * input)


@_in_double_only
def group_norm(
    input: torch.Tensor,
    num_groups: int,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> torch.Tensor:
    """Groups of channels less their mean, over their deviation: onnxruntime normalises none in double precision."""
    rows = input.reshape(input.shape[0], num_groups, -1)
    variance, mean = torch.var_mean(rows, -1, correction=0, keepdim=True)
    result = ((rows - mean) / (variance + eps).sqrt()).reshape(input.shape)
    sizes = (-1, *[1] * (input.dim() - 2))
    result = result if weight is None else result * weight.reshape(sizes)
    return result if bias is None else result + bias.reshape(sizes)


@_in_double_only
def instance_norm(
    input: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    """The same for each channel."""
    return group_norm(input, input.shape[1], weight, bias, eps) if use_input_stats else NotImplemented


def linspace(start: float, end: float, steps: int, **how: Any) -> Any:
    """``steps`` numbers from ``start`` to ``end``, counted from the nearer end, as torch does."""
    if (how.get("dtype") or torch.get_default_dtype()) != torch.float64 or steps < 2:
        return NotImplemented
    place, step = torch.arange(steps, dtype=torch.float64), (end - start) / (steps - 1)
    return torch.where(place < steps // 2, start + step * place, end - step * (steps - 1 - place))


def arange_step(start: Any, end: Any, step: Any = 1, **how: Any) -> Any:
    """From ``start`` to below ``end`` in fractions of 1; how many numbers, and which, torch computes in float64."""
    kind = how.get("dtype") or torch.get_default_dtype()
    known = all(isinstance(each, int | float) for each in (start, end, step))
    whole = not any(isinstance(each, float) for each in (start, end, step))
    if whole or not known or not kind.is_floating_point:
        return NotImplemented
    count = math.ceil((end - start) / step)
    return (start + torch.arange(count).to(torch.float64) * step).to(kind)


def arange_start(start: Any, end: Any, **how: Any) -> Any:
    """The same in steps of 1."""
    return arange_step(start, end, **how)


def arange(end: Any, **how: Any) -> Any:
    """The same from 0."""
    return arange_step(0, end, **how)


DECOMPOSITIONS = {
    **{operator: _in_double_only(formula) for operator, formula in get_decompositions(_BY_FORMULA).items()},
    aten.add.Tensor: add,
    aten.sub.Tensor: sub,
    aten.prelu.default: prelu,
    aten.group_norm.default: group_norm,
    aten.instance_norm.default: instance_norm,
    aten.arange.default: arange,
    aten.arange.start: arange_start,
    aten.arange.start_step: arange_step,
    aten.linspace.default: linspace,
}
