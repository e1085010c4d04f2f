"""Attention as one kernel of torch."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional


def attended(scale: float, *, transposed: bool) -> Callable[..., Tensor]:
    """Attention with a mask that is added; a row of which all keys are hidden is zero."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        key = k.transpose(2, 3) if transposed else k
        return functional.scaled_dot_product_attention(q, key, v, mask, scale=scale)

    return attend
