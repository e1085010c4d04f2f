"""A sequence of numbers as one tensor: ``torch.tensor(list(range(n)))`` where ``n`` varies."""

from __future__ import annotations

from typing import Any

import torch

from entrepot.exporters.torch.rewriting.lists import Grown
from entrepot.exporters.torch.rewriting.sequences import Backwards, Chained, Numbers, Part, Span, Unfinished


def one_tensor(value: Any) -> torch.Tensor | None:
    """The numbers of a sequence whose length varies; ``None`` if it holds no numbers.

    Whole numbers are int64, others of the default type, as in ``torch.tensor``.
    """
    if isinstance(value, Span):
        return torch.arange(value.length) * value.step + value.start
    if isinstance(value, Numbers):
        return _of_default_type(value.tensor)
    if isinstance(value, Grown):
        return _of_default_type(value.stacked())
    if isinstance(value, Chained):
        pieces = [one_tensor(each) if isinstance(each, Unfinished) else torch.tensor(each) for each in value.pieces]
        return None if any(each is None for each in pieces) else torch.cat(pieces)  # type: ignore[arg-type]
    whole = one_tensor(value.whole) if isinstance(value, Backwards | Part) else None
    return None if whole is None else _arranged(whole, value)


def _arranged(whole: torch.Tensor, value: Backwards | Part) -> torch.Tensor:
    if isinstance(value, Backwards):
        return whole.flip(0)
    spaced = whole[value.start :: value.step] if value.step > 1 else whole
    return spaced.narrow(0, 0 if value.step > 1 else value.start, value.length)


def _of_default_type(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype.is_floating_point:
        return tensor.to(torch.get_default_dtype())
    return tensor if tensor.dtype is torch.bool else tensor.to(torch.int64)
