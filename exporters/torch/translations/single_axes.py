"""Axes that are squeezed out: one that is single in the sample is, whatever sizes that depends on.

Captures take no computed size for 1 unless it always is (``capture/settings.py``), and would keep such an axis. Models
count on it being gone: text recognition reduces pictures of every allowed height to one row of features.
"""

from __future__ import annotations

from typing import Any

import torch

from entrepot.exporters.torch.rewriting.environment import hint


def squeeze(input: torch.Tensor, *dims: Any, **how: Any) -> torch.Tensor:
    """``torch.squeeze``, with the condition that what is single in the sample stays so."""
    asked = how.get("dim", dims[0] if len(dims) == 1 else dims)
    places = (asked or range(input.dim())) if isinstance(asked, tuple | list) else (asked,)
    for place in places if input.dim() else ():
        size: Any = input.shape[place]
        if not isinstance(size, int) and hint(size) == 1:
            torch._check(size == 1)  # noqa: SLF001 - documented
    return torch.squeeze(input, *dims, **how)


REPLACEMENTS: dict[Any, Any] = {torch.squeeze: squeeze, torch.Tensor.squeeze: squeeze}
