"""How far from zero results may be, so that kernels that would hide NaN run only where none can arise.

OneDNN's ReLU turns NaN into 0, and saves a pass over the result. A convolution of numbers that are not too large gives
numbers, so it is enough to know how large its operands are: from the convolution that made them, or by a look at them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

LIMIT = 1e35
"""Far enough below the largest float32 that sums do not overflow, in whatever order they are added."""

UNKNOWN = math.nan
"""Compares as false with any limit."""

_VANISHING = 1e-18
"""Numbers below have squares that float32 may round to 0."""


def tell(y: Tensor, reach: float) -> None:
    """Note on a fresh result how far from zero it may be."""
    y.reach = reach  # type: ignore[attr-defined]


def told(x: Tensor) -> float:
    """What was noted on a tensor."""
    reach: float = getattr(x, "reach", UNKNOWN)
    return reach


def measured(x: Tensor) -> float:
    """No less than the largest distance from zero in ``x``; ``UNKNOWN`` where there is NaN, or gaps in its memory."""
    flat = _flat(x)
    if flat is None:
        return UNKNOWN
    return math.sqrt(torch.dot(flat, flat).item()) * 1.01 + _VANISHING


def _flat(x: Tensor) -> Tensor | None:
    """The elements in order of memory."""
    if x.is_contiguous():
        return x.view(-1)
    if x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last):
        return x.permute(0, 2, 3, 1).view(-1)
    return None


class Reach:
    """How far from zero the results of one convolution may be.

    Args:
        weights: Of shape (out, ...).
        bias: Of shape (out,).
        is_told: Whether the convolution's input and what is added to its result are as steps that tell it left them:
            notes may be out of date after others, which work in place.
    """

    def __init__(self, weights: Tensor, bias: Tensor | None, is_told: tuple[bool, bool]) -> None:
        self._gain = float(weights.double().abs().flatten(1).sum(1).max()) if weights.numel() else 0.0
        self._offset = 0.0 if bias is None or not bias.numel() else float(bias.abs().max())
        self._is_told = is_told

    def by_notes(self, x: Tensor, residual: Tensor | None) -> float:
        """As far as the operands' makers tell."""
        if not self._is_told[0]:
            return UNKNOWN
        added = 0.0 if residual is None else told(residual) if self._is_told[1] else UNKNOWN
        return self._gain * told(x) + self._offset + added

    def by_measure(self, x: Tensor, residual: Tensor | None) -> float:
        """As far as a look at the operands tells, for which each is read once."""
        reach = self._gain * measured(x) + self._offset
        return reach if residual is None or not reach < LIMIT else reach + measured(residual)
