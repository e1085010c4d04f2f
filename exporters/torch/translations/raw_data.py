"""``tensor.data``, by which code writes to weights behind the back of autograd, and of torch.export (2.13)."""

from __future__ import annotations

from typing import Any

import torch


def replace(tensor: torch.Tensor, data: torch.Tensor) -> None:
    """``tensor.data = data``: what a graph knows of it is that the tensor has other elements."""
    if tensor.shape == data.shape and tensor.dtype == data.dtype:
        tensor.copy_(data)
    else:
        tensor.data = data


REPLACEMENTS: dict[Any, Any] = {
    torch.Tensor.data.__get__: torch.Tensor.detach,  # type: ignore[attr-defined]
    torch.Tensor.data.__set__: replace,  # type: ignore[attr-defined]
}
