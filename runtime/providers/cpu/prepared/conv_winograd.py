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

from entrepot.runtime.kernels.window import Window
from entrepot.runtime.providers.cpu.prepared.conv_plan import ConvPlan, Epilogue
from entrepot.runtime.providers.cpu.scratch import scratch

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
        y = np.empty((x.shape[0], self._weights.shape[1], *self._win.target), x.dtype)
        for image in range(x.shape[0]):
            other = None if residual is None else residual[image]
            if not self._run_image(x[image], y[image], other):
                y[image] = self._direct().run(x[image : image + 1], None if other is None else other[None])[0]
        return y

    def _run_image(self, x: Array, y: Array, residual: Array | None) -> bool:
        """False as soon as a result is not finite."""
        planes = self._planes(x)
        outputs = self._weights.shape[1]
        for first in range(0, self._tiles[0], self._rows):
            rows = min(self._rows, self._tiles[0] - first)
            products = self._products(planes, first * self._pitch, rows * self._pitch)
            lines = slice(2 * first, 2 * (first + rows))
            self._write(products, y[:, lines], rows)
            tile = y[:, lines].reshape(outputs, -1)  # whole rows: a view
            if not np.isfinite(add.reduce(tile, axis=None)):
                return False
            if self._epilogue is not None:
                self._epilogue(tile, None if residual is None else residual[:, lines].reshape(tile.shape))
        return True

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
        half = scratch.take("winograd rows", (4, 2, channels, count + 1), planes.dtype)
        here = slice(start, start + count + 1)
        below = slice(start + self._pitch, start + self._pitch + count + 1)
        _input_transform(
            planes[0, :, :, here], planes[1, :, :, here], planes[0, :, :, below], planes[1, :, :, below], half
        )
        tiles = scratch.take("winograd tiles", (4, 4, channels, count), planes.dtype)
        even, odd = half[:, 0], half[:, 1]
        columns = (even[..., :count], odd[..., :count], even[..., 1:], odd[..., 1:])
        _input_transform(*columns, tiles.swapaxes(0, 1))
        products = scratch.take("winograd products", (4, 4, outputs, count), planes.dtype)
        np.matmul(self._weights, tiles.reshape(16, channels, count), out=products.reshape(16, outputs, count))
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


def _input_transform(d0: Array, d1: Array, d2: Array, d3: Array, out: Array) -> None:
    subtract(d0, d2, out=out[0])
    add(d1, d2, out=out[1])
    subtract(d2, d1, out=out[2])
    subtract(d1, d3, out=out[3])


def _output_transform(m: Array, out: Array) -> None:
    add(m[1], m[2], out=out[0])
    add(out[0], m[0], out=out[0])
    subtract(m[1], m[2], out=out[1])
    subtract(out[1], m[3], out=out[1])
