"""Rows of lengths that vary, padded to the longest: torch.export (2.13) takes its length for a constant."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from entrepot.exporters.torch.upstream import pad_rows


def pad_sequence(
    sequences: Sequence[torch.Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:
    """Rows under one another, each as long as the longest of them."""
    lengths: list[Any] = [row.shape[0] for row in sequences]
    if all(isinstance(length, int) for length in lengths):
        return pad_rows(sequences, batch_first, padding_value, padding_side)
    longest = functools.reduce(torch.sym_max, lengths)
    return torch.stack(
        [
            F.pad(row, (*(0, 0) * (row.dim() - 1), *_missing(longest - length, padding_side)), value=padding_value)
            for row, length in zip(sequences, lengths, strict=True)
        ],
        dim=0 if batch_first else 1,
    )


def _missing(count: Any, side: str) -> tuple[Any, Any]:
    return (count, 0) if side == "left" else (0, count)


REPLACEMENTS: dict[Any, Any] = {pad_rows: pad_sequence}
