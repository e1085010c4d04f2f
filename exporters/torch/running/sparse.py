"""Tensors that keep their entries only."""

from __future__ import annotations

from typing import Any

import torch

_LAYOUTS = frozenset({torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc})


def is_sparse(value: Any) -> bool:
    """Whether a value is such a tensor."""
    return isinstance(value, torch.Tensor) and value.layout in _LAYOUTS


def coordinates(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The places of its entries, each once and in order, and what is there."""
    entries = matrix.detach().to_sparse_coo().coalesce()
    return entries.indices().clone(), entries.values().clone()  # those of ``entries`` count as views of it


def same_entries(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two of one shape have the same entries; torch (2.13) compares none."""
    return all(map(torch.equal, coordinates(first), coordinates(second)))
