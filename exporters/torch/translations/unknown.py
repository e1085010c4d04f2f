"""Numbers that are known only when the graph runs."""

from __future__ import annotations

from typing import Any

import torch

from entrepot.exporters.torch.upstream import has_guarding_hint, remembered_number


def is_unknown(item: Any) -> bool:
    """Whether an index, or a bound of one, is such a number."""
    if isinstance(item, torch.SymInt):
        return not has_guarding_hint(item)
    is_number = isinstance(item, torch.Tensor) and item.dim() == 0 and item.dtype in (torch.int32, torch.int64)
    return is_number and remembered_number(item) is None
