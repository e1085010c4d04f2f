"""Depthwise convolutions in the plane: every channel by itself, each point of the window one long contiguous copy.

A channel's padded input is held as planes, one for each remainder of row and column by the strides, whose rows follow
each other without a gap. A point of the window is then a shift of one flat plane; the spare columns at the end of each
row hold sums that belong to no output, and are dropped.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from entrepot.runtime import room
from entrepot.runtime.kernels.window import Window
from entrepot.runtime.providers.cpu.prepared.conv_plan import Epilogue, Filters, finish
from entrepot.runtime.providers.cpu.scratch import scratch
from entrepot.runtime.threads import each, one_blas_thread

Array: TypeAlias = np.ndarray[Any, Any]

_TILE_BYTES = 1_500_000
_LARGEST = 4_000_000
_SMALLEST = 40_000
_COPY = 10
"""The cost of copying an element, in multiplications."""


def suits(win: Window, packed: Filters, channels: int) -> bool:
    """Whether every channel is by itself, and neither so small that calls dominate nor too large for the cache."""
    if len(win.kernel) != 2 or channels < 2 or packed.matrices.shape[0] != channels or 0 in win.target:
        return False
    size = win.points * win.target[0] * -(-win.padded[1] // win.strides[1]) * packed.matrices.itemsize
    return size <= _LARGEST and size * channels > _SMALLEST


class DepthwisePlan:
    """One depthwise convolution at one input shape."""

    def __init__(self, win: Window, packed: Filters, epilogue: Epilogue | None) -> None:
        self._win = win
        self._filters = packed
        self._epilogue = epilogue
        self._rows, self._pitch = (-(-size // s) for size, s in zip(win.padded, win.strides, strict=True))
        self._points = win.target[0] * self._pitch
        self._places = [self._place(*tap) for tap in np.ndindex(*win.kernel)]
        self._length = max(self._rows * self._pitch, max(shift for _, _, shift in self._places) + self._points)
        self._step = max(1, _TILE_BYTES // (win.points * self._points * packed.matrices.itemsize))

    def _place(self, row: int, column: int) -> tuple[int, int, int]:
        """The plane that a point of the window reads, and where it starts to read."""
        (tall, wide), (down, right) = self._win.dilations, self._win.strides
        row, column = row * tall, column * wide
        return row % down, column % right, row // down * self._pitch + column // right

    def run(self, x: Array, residual: Array | None = None) -> Array:
        """The convolution of ``x``, finished with tiles of ``residual``."""
        channels, multiple, points = self._filters.matrices.shape
        y = room.empty((x.shape[0], channels * multiple, *self._win.target), x.dtype)
        other = None if residual is None else residual.reshape(y.shape)

        def make(task: tuple[int, int]) -> None:
            image, first = task
            outputs = slice(first * multiple, (first + self._step) * multiple)
            target = y[image, outputs]
            self._multiply(
                x[image, first : first + self._step], self._filters.matrices[first : first + self._step], target
            )
            tile = target.reshape(len(target), -1)
            bias = None if self._filters.bias is None else self._filters.bias[outputs]
            finish(tile, bias, self._epilogue, None if other is None else other[image, outputs].reshape(tile.shape))

        tasks = list(itertools.product(range(x.shape[0]), range(0, channels, self._step)))
        with one_blas_thread:
            each(make, tasks, x.shape[0] * channels * points * self._points * (multiple + _COPY))
        return y

    def _multiply(self, x: Array, matrices: Array, target: Array) -> None:
        columns = scratch.take("depthwise columns", (len(x), matrices.shape[2], self._points), x.dtype)
        self._copy(self._planes(x), columns)
        sums = scratch.take("depthwise sums", (*matrices.shape[:2], self._points), x.dtype)
        np.matmul(matrices, columns, out=sums)
        target[...] = sums.reshape(len(target), self._win.target[0], self._pitch)[:, :, : self._win.target[1]]

    def _planes(self, x: Array) -> Array:
        """(channels, strides, strides, points): the padded input's rows and columns by their remainders."""
        (top, left), (down, right) = self._win.begin, self._win.strides
        flat = scratch.take("depthwise planes", (len(x), down, right, self._length), x.dtype)
        flat.fill(0)
        grid = flat[..., : self._rows * self._pitch].reshape(len(x), down, right, self._rows, self._pitch)
        for a, b in itertools.product(range(down), range(right)):
            first_row, first_column = (a - top) % down, (b - left) % right
            part = x[:, first_row::down, first_column::right]
            row, column = (first_row + top) // down, (first_column + left) // right
            grid[:, a, b, row : row + part.shape[1], column : column + part.shape[2]] = part
        return flat

    def _copy(self, planes: Array, columns: Array) -> None:
        if math.prod(self._win.strides) > 1:
            for index, (a, b, shift) in enumerate(self._places):
                np.copyto(columns[:, index], planes[:, a, b, shift : shift + self._points])
            return
        item, (tall, wide) = planes.itemsize, self._win.dilations
        shape = (len(planes), *self._win.kernel, self._points)
        shifts = as_strided(planes, shape, (planes.strides[0], tall * self._pitch * item, wide * item, item))
        np.copyto(columns.reshape(shape), shifts)
