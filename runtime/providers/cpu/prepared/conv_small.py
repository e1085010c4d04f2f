"""Convolutions whose unrolled windows fit into the cache whole: everything but four NumPy calls is done beforehand."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime import room
from entrepot.runtime.kernels.window import Window
from entrepot.runtime.providers.cpu.native.windows import windows
from entrepot.runtime.providers.cpu.prepared.conv_plan import Epilogue, Filters
from entrepot.runtime.providers.cpu.products import matmul

Array: TypeAlias = np.ndarray[Any, Any]

_BYTES = 256_000  # every shape seen keeps its columns, as many as were ever in use at once


class _Workspace:
    """A bordered input, the view of its windows, and the columns they are copied to.

    The border is written once: it stays zero. Ones that carry the bias stay, too.
    """

    def __init__(self, win: Window, packed: Filters, batch: int) -> None:
        groups, outputs, columns = packed.matrices.shape
        dtype = packed.matrices.dtype
        copied = columns - packed.bias_inside
        bordered = room.zeros((batch, groups * copied // win.points, *win.padded), dtype)
        inner = [slice(b, b + size) for b, size in zip(win.begin, win.source, strict=True)]
        self.inside = bordered[(slice(None), slice(None), *inner)]
        self.columns = room.full((batch, groups, columns, math.prod(win.target)), 1, dtype)
        self.windows = windows(bordered, win)
        parts = [self.columns[image, :, :copied].reshape(self.windows.shape[1:]) for image in range(batch)]
        self.copies = list(zip(parts, self.windows, strict=True))
        self.shape = (batch, groups * outputs, *win.target)


class SmallConvPlan:
    """One convolution at one small input shape."""

    def __init__(self, win: Window, packed: Filters, batch: int, epilogue: Epilogue | None) -> None:
        self._new = partial(_Workspace, win, packed, batch)
        self._idle = [self._new()]  # taken by whoever runs: threads that come and go find it warm
        self._matrices = packed.matrices
        self._bias = None if packed.bias is None else packed.bias.reshape(-1, *[1] * len(win.kernel))
        self._epilogue = epilogue

    def run(self, x: Array, residual: Array | None = None) -> Array:
        """The convolution of ``x``, finished with ``residual``."""
        try:
            work = self._idle.pop()
        except IndexError:
            work = self._new()
        work.inside[...] = x
        for part, windows_of_image in work.copies:
            np.copyto(part, windows_of_image)
        y = matmul(self._matrices, work.columns).reshape(work.shape)
        self._idle.append(work)
        if self._bias is not None:
            np.add(y, self._bias, out=y)
        if self._epilogue is not None:
            self._epilogue(y, None if residual is None else residual.reshape(work.shape))
        return y


def is_small(win: Window, packed: Filters, batch: int) -> bool:
    """Whether the columns of the whole batch fit."""
    groups, _, columns = packed.matrices.shape
    return batch * groups * columns * math.prod(win.target) * packed.matrices.itemsize <= _BYTES
