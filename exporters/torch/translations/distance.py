"""Distances between pairs of rows."""

from __future__ import annotations

import torch

from entrepot.exporters.torch.translations.triangles import triu_indices


def cdist(
    x1: torch.Tensor, x2: torch.Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> torch.Tensor:
    """The p-norm of the difference of every row of ``x1`` and every row of ``x2``."""
    return _norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


def pdist(input: torch.Tensor, p: float = 2.0) -> torch.Tensor:
    """The p-norm of the difference of every row and every later row."""
    one, other = triu_indices(input.shape[0], input.shape[0], 1, device=input.device)
    return _norm(input[one] - input[other], p)


def _norm(difference: torch.Tensor, p: float) -> torch.Tensor:
    difference = difference.abs()
    if p == 0:
        return (difference != 0).to(difference.dtype).sum(-1)
    if p == 1:
        return difference.sum(-1)
    if p == float("inf"):
        return difference.amax(-1)
    return (difference * difference).sum(-1).sqrt() if p == 2 else difference.pow(p).sum(-1).pow(1 / p)


REPLACEMENTS = {torch.cdist: cdist, torch.pdist: pdist}
