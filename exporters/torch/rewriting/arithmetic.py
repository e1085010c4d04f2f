"""What Python's operators do with comparisons of sizes, and with lists."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.environment import may_be_none
from entrepot.exporters.torch.rewriting.sequences import Parted
from entrepot.exporters.torch.rewriting.shapes import as_tensor

_PLAIN: Mapping[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}


def as_number(left: Any, how: str, right: Any) -> Any:
    """``left > right`` as Python counts with it, 1 or 0, without asking which of the two it is.

    Args:
        left: What is compared.
        how: The name of Python's node for the operator.
        right: What it is compared with.
    """
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


def compared(left: Any, how: str, right: Any) -> Any:
    """``len(items) > right`` of a list that grows in a loop: torch would have that it holds something already."""
    if may_be_none(left) or may_be_none(right):
        left, right = as_tensor(left), as_tensor(right)
    return _PLAIN[how](left, right)


def _one(size: Any) -> Any:
    """1 if it is positive, else 0."""
    return torch.sym_min(torch.sym_max(size, 0), 1)


def plus(one: Any, other: Any) -> Any:
    """What ``x[i] += y`` puts there: a list that is longer, or a sum."""
    if isinstance(one, list | Parted):
        one += other
        return one
    return one + other
