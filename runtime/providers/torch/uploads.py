"""Small arrays that kernels make on the host and need on a device: each is taken there once for each part.

Taking an array there is the slowest thing that a kernel does, and work that does it cannot be captured.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from entrepot.runtime.providers.torch.dtypes import tensor_of

_LARGEST = 1 << 16
"""Bytes of an array that is kept; tables of places and weights are smaller."""

_MOST = 1024
"""Arrays that are kept; where sizes vary from run to run, others are asked for each time."""


class Uploads:
    """What one part has taken to its device; kernels find it while the part runs within ``with``.

    Attributes:
        kept: The tensors by their content. Captured work reads them, so it must keep them.
    """

    def __init__(self) -> None:
        self.kept: dict[tuple[Any, ...], Tensor] = {}
        self._tokens: list[Token[Uploads | None]] = []

    def __enter__(self) -> Self:
        self._tokens.append(_CURRENT.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._tokens.pop())

    def of(self, array: np.ndarray[Any, Any], device: torch.device) -> Tensor:
        """A tensor of its own with the values of an array."""
        key = device, array.dtype.str, str(array.dtype), array.shape, array.tobytes()
        found = self.kept.get(key)
        if found is None:
            found = tensor_of(array).to(device)
            if len(self.kept) < _MOST:
                self.kept[key] = found
        return found.clone()  # who asks may write to it


_CURRENT: ContextVar[Uploads | None] = ContextVar("uploads", default=None)


def uploaded(array: np.ndarray[Any, Any], device: torch.device) -> Tensor:
    """A tensor on a device with the values of an array."""
    kept = kept_upload(array, device)
    return tensor_of(array).to(device) if kept is None else kept


def kept_upload(array: np.ndarray[Any, Any], device: torch.device) -> Tensor | None:
    """The same, if a part runs that keeps what it took there and the array is small."""
    uploads = None if torch.compiler.is_compiling() else _CURRENT.get()
    return None if uploads is None or array.nbytes > _LARGEST else uploads.of(array, device)
