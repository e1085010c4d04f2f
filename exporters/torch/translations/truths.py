"""Truths that Python reads of tensors are branches: as symbols, they would be unequal to ``1`` and no ``True``."""

from __future__ import annotations

import sys
from typing import Any

import torch

from entrepot.exporters.torch.upstream import CHECK_OF_TENSORS


def item(self: torch.Tensor) -> Any:
    """``tensor.item()``; a truth is asked for as ``bool`` asks, so that what cannot be known is not made up."""
    return bool(self) if self.dtype is torch.bool and not _is_checked() else self.item()


def _is_checked() -> bool:
    """Whether torch asks, to check what a user says of a tensor: it takes a symbol, and no branch follows."""
    frame = sys._getframe()  # noqa: SLF001 - as traceback does, without the text of each line
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code is CHECK_OF_TENSORS:
            return True
    return False


def where(condition: torch.Tensor, *values: Any, **how: Any) -> Any:
    """``torch.where``, whose condition may be bytes (torch.export 2.13 refuses these)."""
    return torch.where(condition.bool() if condition.dtype is torch.uint8 else condition, *values, **how)


REPLACEMENTS = {torch.Tensor.item: item, torch.where: where}
