"""Truths that Python reads of tensors are branches: as symbols, they would be unequal to ``1`` and no ``True``."""

from __future__ import annotations

from typing import Any

import torch


def item(self: torch.Tensor) -> Any:
    """``tensor.item()``; a truth is asked for as ``bool`` asks, so that what cannot be known is not made up."""
    return bool(self) if self.dtype is torch.bool else self.item()


def where(condition: torch.Tensor, *values: Any, **how: Any) -> Any:
    """``torch.where``, whose condition may be bytes (torch.export 2.13 refuses these)."""
    return torch.where(condition.bool() if condition.dtype is torch.uint8 else condition, *values, **how)


REPLACEMENTS = {torch.Tensor.item: item, torch.where: where}
