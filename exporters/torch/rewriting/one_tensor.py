"""A sequence of numbers as one tensor: ``torch.tensor(list(range(n)))`` where ``n`` varies."""

from __future__ import annotations

from typing import Any

import torch

from entrepot.exporters.torch.rewriting.sequences import Backwards, Grown, Numbers, Part, Span


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
    if not isinstance(value, Backwards | Part):
        return None
    whole = one_tensor(value.whole)
    if whole is None:
        return None
    return whole.flip(0) if isinstance(value, Backwards) else whole.narrow(0, value.start, value.length)


def _of_default_type(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype.is_floating_point:
        return tensor.to(torch.get_default_dtype())
    return tensor if tensor.dtype is torch.bool else tensor.to(torch.int64)
