"""3x3 convolutions at stride 1 by Winograd's F(2x2, 3x3): 16 products for four outputs instead of 36.

Its constants are 1 and 1/2, so float32 results stay within about 1e-6 of the largest one, as the direct sum's do. The
input is held as four planes, one for each parity of row and column; a plane's rows follow each other with one spare
point, so that a step to the next tile's column or row is a shift of the flat plane, and every pass runs over long
contiguous vectors. What is not finite would spread over a tile: such an image is done again directly.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy import add, subtract

from entrepot.runtime import room
from entrepot.runtime.blas import product
from entrepot.runtime.kernels.window import Window
from entrepot.runtime.providers.cpu.prepared.conv_plan import ConvPlan, Epilogue
from entrepot.runtime.providers.cpu.scratch import scratch
from entrepot.runtime.threads import each, one_blas_thread

Array: TypeAlias = np.ndarray[Any, Any]

_TILE_BYTES = 2_500_000
_TILE_POINTS = 120
_KERNEL = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])


def suits(win: Window, W: Array, group: int) -> bool:
    """Whether the transform is possible and pays: enough channels, and enough tiles to fill a product."""
    shape = (win.kernel, win.strides, win.dilations) == ((3, 3), (1, 1), (1, 1))
    return shape and group == 1 and W.dtype == np.float32 and _is_wide(W) and math.prod(win.target) >= 196


def _is_wide(W: Array) -> bool:
    return min(W.shape[:2]) >= 32 and W.shape[0] * W.shape[1] >= 2048


def transformed(W: Array) -> Array:
    """(16, outputs, channels) from (outputs, channels, 3, 3), rounded once."""
    with one_blas_thread:
        points = np.einsum("ui,mcij,vj->uvmc", _KERNEL, W.astype(np.float64), _KERNEL, optimize=True)
    return np.ascontiguousarray(points.reshape(16, *W.shape[:2]), dtype=W.dtype)


class WinogradPlan:
    """One convolution at one input shape; ``direct`` makes the plan for images that hold an infinity or a NaN."""

    def __init__(
        self, win: Window, weights: Array, bias: Array | None, epilogue: Epilogue | None, direct: Callable[[], ConvPlan]
    ) -> None:
        self._win = win
        self._weights = weights
        self._bias = None if bias is None else bias.reshape(-1, 1).astype(weights.dtype, copy=False)
        self._epilogue = epilogue
        self._direct = direct
        self._tiles = tuple(-(-size // 2) for size in win.target)
        self._pitch = self._tiles[1] + 1  # one spare tile a row, whose result is dropped
        self._rows = self._rows_per_pass()

    def _rows_per_pass(self) -> int:
        bytes_per_row = 16 * sum(self._weights.shape[1:]) * self._pitch * self._weights.itemsize
        rows = max(_TILE_BYTES // bytes_per_row, -(-_TILE_POINTS // self._pitch))
        return min(rows, self._tiles[0])

    def run(self, x: Array, residual: Array | None = None) -> Array:
        """The convolution of ``x``, finished with tiles of ``residual``."""
        y = room.empty((x.shape[0], self._weights.shape[1], *self._win.target), x.dtype)
        work = self._weights.size * self._tiles[0] * self._pitch

        def make(image: int) -> None:
            other = None if residual is None else residual[image]
            if not self._run_image(x[image], y[image], other, work):
                y[image] = self._direct().run(x[image : image + 1], None if other is None else other[None])[0]

        with one_blas_thread:
            each(make, range(x.shape[0]), work * x.shape[0])
        return y

    def _run_image(self, x: Array, y: Array, residual: Array | None, work: int) -> bool:
        """False when a result is not finite."""
        planes = self._planes(x)
        outputs = self._weights.shape[1]
        spoilt: list[int] = []

        def make(first: int) -> None:
            rows = min(self._rows, self._tiles[0] - first)
            products = self._products(planes, first * self._pitch, rows * self._pitch)
            lines = slice(2 * first, 2 * (first + rows))
            self._write(products, y[:, lines], rows)
            tile = y[:, lines].reshape(outputs, -1)  # whole rows: a view
            if not np.isfinite(add.reduce(tile, axis=None)):
                spoilt.append(first)
            elif self._epilogue is not None:
                self._epilogue(tile, None if residual is None else residual[:, lines].reshape(tile.shape))

        each(make, range(0, self._tiles[0], self._rows), work)
        return not spoilt

    def _planes(self, x: Array) -> Array:
        """(2, 2, channels, points): the padded input's rows and columns by parity."""
        tall, wide = self._tiles[0] + 1, self._pitch
        flat = scratch.take("winograd planes", (2, 2, x.shape[0], tall * wide + 2), x.dtype)
        flat.fill(0)
        top, left = self._win.begin
        for a, b in itertools.product((0, 1), repeat=2):
            part = x[:, (a - top) % 2 :: 2, (b - left) % 2 :: 2]
            row, column = ((a - top) % 2 + top) // 2, ((b - left) % 2 + left) // 2
            plane = flat[a, b, :, : tall * wide].reshape(x.shape[0], tall, wide)
            plane[:, row : row + part.shape[1], column : column + part.shape[2]] = part
        return flat

    def _products(self, planes: Array, start: int, count: int) -> Array:
        """(4, 4, outputs, count): transformed tiles times transformed weights."""
        channels, outputs = planes.shape[2], self._weights.shape[1]
        here = slice(start, start + count + 1)
        below = slice(start + self._pitch, start + self._pitch + count + 1)
        lines = (planes[0, :, :, here], planes[1, :, :, here], planes[0, :, :, below], planes[1, :, :, below])
        products = scratch.take("winograd products", (4, 4, outputs, count), planes.dtype)

        def make(row: int) -> None:
            """One row of the sixteen products."""
            half = scratch.take("winograd rows", (2, channels, count + 1), planes.dtype)
            combine, first, second = _INPUT_ROWS[row]
            combine(lines[first], lines[second], out=half)
            tiles = scratch.take("winograd tiles", (4, channels, count), planes.dtype)
            columns = (half[0, :, :count], half[1, :, :count], half[0, :, 1:], half[1, :, 1:])
            for tile, (combine_columns, left, right) in zip(tiles, _INPUT_ROWS, strict=True):
                combine_columns(columns[left], columns[right], out=tile)
            product(self._weights[4 * row : 4 * row + 4], tiles, products[row])

        each(make, range(4), self._weights.size * count)
        if self._bias is not None:
            add(products[1, 1], self._bias, out=products[1, 1])  # the one that enters all four outputs with weight 1
        return products

    def _write(self, products: Array, y: Array, rows: int) -> None:
        """The outputs of each tile at their places; spare tiles and what exceeds the output are dropped."""
        outputs, count = products.shape[2:]
        sums = scratch.take("winograd sums", (2, 4, outputs, count), products.dtype)
        _output_transform(products, sums)
        ends = scratch.take("winograd ends", (2, outputs, count), products.dtype)
        for a in (0, 1):
            _output_transform(sums[a], ends)
            target = y[:, a::2]
            grid = ends.reshape(2, outputs, rows, self._pitch)[:, :, : target.shape[1]]
            for b in (0, 1):
                columns = target[:, :, b::2]
                columns[...] = grid[b, :, :, : columns.shape[2]]


_INPUT_ROWS: tuple[tuple[np.ufunc, int, int], ...] = ((subtract, 0, 2), (add, 1, 2), (subtract, 2, 1), (subtract, 1, 3))
"""The input's transform: which two of four neighbouring lines make each line of it, and how."""


def _output_transform(m: Array, out: Array) -> None:
    add(m[1], m[2], out=out[0])
    add(out[0], m[0], out=out[0])
    subtract(m[1], m[2], out=out[1])
    subtract(out[1], m[3], out=out[1])
