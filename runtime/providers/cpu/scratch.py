"""Memory that kernels keep between runs: one buffer per thread and purpose, shared by all nodes.

Nothing handed out here may outlive the kernel call it was taken for: results are never views of it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime import room

Array: TypeAlias = np.ndarray[Any, Any]


class Scratch(threading.local):
    """Buffers that grow to the largest size asked for; each thread has its own."""

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = {}

    def take(self, purpose: str, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """An array with arbitrary contents, valid until this thread takes the same purpose again."""
        size = math.prod(shape) * dtype.itemsize
        buffer = self._buffers.get(purpose)
        if buffer is None or buffer.nbytes < size:
            buffer = self._buffers[purpose] = room.empty((size,), np.uint8)
        return buffer[:size].view(dtype).reshape(shape)


scratch = Scratch()
