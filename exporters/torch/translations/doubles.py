"""float64 with all its digits: ONNX keeps parameters of operators in float32, and torch.onnx (2.13) numbers too."""

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
    aten.arange.default: arange,
    aten.arange.start: arange_start,
    aten.arange.start_step: arange_step,
    aten.linspace.default: linspace,
}
