"""``scores[kept, kind]``: a number that varies beside a mask is read first, as torch itself does with a constant."""

from __future__ import annotations

from typing import Any

import torch


def beside_mask(tensor: torch.Tensor, index: Any) -> tuple[torch.Tensor, Any]:
    """A tensor and an index of it, without the sizes that stand beside a mask in the index.

    As a tensor of one element, a number would be broadcast to as many as the mask marks, which nobody knows.
    """
    parts = list(index) if isinstance(index, tuple) else []
    masks = [at for at, part in enumerate(parts) if isinstance(part, torch.Tensor)]
    numbers = [at for at, part in enumerate(parts) if isinstance(part, torch.SymInt)]
    if len(masks) != 1 or not numbers or parts[masks[0]].dtype is not torch.bool:
        return tensor, index
    if not all(isinstance(part, slice | int | torch.SymInt | torch.Tensor) for part in parts):
        return tensor, index
    axes = [parts[at].dim() if at in masks else 1 for at in range(len(parts))]
    for at in reversed(numbers):
        tensor = tensor.select(sum(axes[:at]), parts.pop(at))
    return tensor, tuple(parts)
