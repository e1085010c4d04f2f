"""``embedding_bag`` by its definition: look rows up, reduce each bag.

torch.onnx translates it to a Loop over bags with one slice each, which fixes the length of a bag.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere


def embedding_bag(  # the signature is torch's
    input: torch.Tensor,
    weight: torch.Tensor,
    offsets: torch.Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Sums, means or maxima of bags of rows; rows at ``padding_idx`` do not count."""
    if max_norm is not None or (mode == "max" and input.dim() == 1):
        return F.embedding_bag(
            input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse, per_sample_weights,
            include_last_offset, padding_idx,
        )  # fmt: skip
    rows = F.embedding(input, weight)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    counted = None if padding_idx is None else (input != padding_idx % weight.shape[0]).unsqueeze(-1)
    if counted is not None:
        rows = torch.where(counted, rows, torch.full_like(rows, -torch.inf if mode == "max" else 0.0))
    if input.dim() == 2:
        return _rectangular(rows, counted, mode)
    assert offsets is not None
    return _ragged(rows, counted, offsets, mode, include_last_offset)


def _rectangular(rows: torch.Tensor, counted: torch.Tensor | None, mode: str) -> torch.Tensor:
    """Bags of one length: [bags, length, width]."""
    if mode == "max":
        best = rows.amax(1)
        return best if counted is None else torch.where(counted.any(1), best, torch.zeros_like(best))
    if mode == "sum":
        return rows.sum(1)
    return rows.mean(1) if counted is None else rows.sum(1) / counted.sum(1).clamp(min=1).to(rows.dtype)


def _ragged(
    rows: torch.Tensor, counted: torch.Tensor | None, offsets: torch.Tensor, mode: str, include_last_offset: bool
) -> torch.Tensor:
    """Bags that begin at ``offsets``: row ``j`` is in the last bag to begin at or before it."""
    bags = offsets.shape[0]
    begins = rows.new_zeros(rows.shape[0] + 1, dtype=torch.int64)
    begins = begins.scatter_add(0, offsets.to(torch.int64), torch.ones_like(offsets, dtype=torch.int64))
    bag = (begins.cumsum(0)[:-1] - 1).unsqueeze(-1)
    total = rows.new_zeros(bags, rows.shape[-1]).scatter_add(0, bag.expand_as(rows), rows)
    if mode == "mean":
        each = torch.ones_like(rows[:, :1]) if counted is None else counted.to(rows.dtype)
        total = total / rows.new_zeros(bags, 1).scatter_add(0, bag, each).clamp(min=1)
    return total[:-1] if include_last_offset else total


REPLACEMENTS = {F.embedding_bag: embedding_bag}
