"""``size % 4 > 0`` as the number that Python counts with: 1 or 0, without asking which of the two it is."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch

_PLAIN: Mapping[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}


def as_number(left: Any, how: str, right: Any) -> Any:
    """``left > right`` in arithmetic; ``how`` is the name of Python's node for the operator."""
    sizes = isinstance(left, torch.SymInt) or isinstance(right, torch.SymInt)
    if not (sizes and isinstance(left, int | torch.SymInt) and isinstance(right, int | torch.SymInt)):
        return _PLAIN[how](left, right)
    if how in ("Lt", "LtE"):
        left, right = right, left
    difference = left - right
    if how in ("Lt", "Gt"):
        return _one(difference)
    if how in ("LtE", "GtE"):
        return _one(difference + 1)
    apart = _one(torch.sym_max(difference, -difference))
    return apart if how == "NotEq" else 1 - apart


def _one(size: Any) -> Any:
    """1 if it is positive, else 0."""
    return torch.sym_min(torch.sym_max(size, 0), 1)
