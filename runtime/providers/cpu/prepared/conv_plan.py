"""How one convolution runs at one input shape: unrolled windows, a tile of rows at a time, each one matrix product.

A tile's columns stay in the cache between being written and being multiplied, and its output is still there when bias,
activation and residual are applied.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from entrepot.runtime import room
from entrepot.runtime.blas import product
from entrepot.runtime.kernels.window import Window
from entrepot.runtime.providers.cpu.products import Part, is_alone, parts
from entrepot.runtime.providers.cpu.scratch import scratch
from entrepot.runtime.threads import each, one_blas_thread

Array: TypeAlias = np.ndarray[Any, Any]
Epilogue: TypeAlias = Callable[[Array, Array | None], object]
"""Changes a tile of the output (bias included) in place, given the same tile of the residual, if there is one."""

_COLUMN_BYTES = 1_500_000
_WHOLE_BYTES = 4_000_000
_COPY = 10
"""The cost of copying an element of a column, in multiplications."""


@dataclass(frozen=True)
class Filters:
    """A convolution's weights, as matrices.

    Attributes:
        matrices: (groups, outputs of a group, columns); the last column is the bias when ``bias_inside``.
        bias: (outputs, 1), to be added to the product, or ``None``.
        bias_inside: Whether the columns get a row of ones.
    """

    matrices: Array
    bias: Array | None
    bias_inside: bool

    @property
    def outputs(self) -> int:
        """Channels of the result."""
        return self.matrices.shape[0] * self.matrices.shape[1]


def filters(W: Array, bias: Array | None, group: int, *, pointwise: bool) -> Filters:
    """Weights as matrices; a single group's bias joins them where columns are copied anyway."""
    matrices = W.reshape(group, W.shape[0] // group, -1)
    if bias is None:
        return Filters(matrices, None, bias_inside=False)
    column = bias.reshape(group, -1, 1).astype(W.dtype, copy=False)
    if pointwise or group > 1:
        return Filters(matrices, column.reshape(-1, 1), bias_inside=False)
    return Filters(np.concatenate([matrices, column], axis=2), None, bias_inside=True)


class ConvPlan:
    """One convolution at one input shape."""

    def __init__(self, win: Window, packed: Filters, epilogue: Epilogue | None) -> None:
        self._win = win
        self._filters = packed
        self._epilogue = epilogue
        self._line = math.prod(win.target[1:])
        self._groups, self._rows = self._tile()

    def _tile(self) -> tuple[int, int]:
        """How many groups, and how many rows of the output, are unrolled at a time."""
        groups, _, columns = self._filters.matrices.shape
        rows = self._win.target[0]
        row_bytes = max(columns * self._line * self._filters.matrices.itemsize, 1)
        if groups * rows * row_bytes <= _WHOLE_BYTES:
            return groups, max(rows, 1)
        together = max(_COLUMN_BYTES // (rows * row_bytes), 1)
        if together * rows * row_bytes <= _WHOLE_BYTES:
            return together, rows
        return 1, max(_COLUMN_BYTES // row_bytes, 1)

    def run(self, x: Array, residual: Array | None = None) -> Array:
        """The convolution of ``x``, finished with tiles of ``residual``."""
        batch, outputs = x.shape[0], self._filters.outputs
        y = room.empty((batch, outputs, *self._win.target), x.dtype)
        flat = y.reshape(batch, outputs, math.prod(self._win.target))
        other = None if residual is None else residual.reshape(flat.shape)
        x = self._bordered(x)

        def make(tile: tuple[int, int, int]) -> None:
            image, group, first = tile
            self._run_tile(x[image], flat[image], None if other is None else other[image], group, first)

        groups, per_group, columns = self._filters.matrices.shape
        tiles = list(
            itertools.product(range(batch), range(0, groups, self._groups), range(0, self._win.target[0], self._rows))
        )
        with one_blas_thread:
            each(make, tiles, batch * groups * (per_group + _COPY) * columns * flat.shape[2])
        return y

    def _bordered(self, x: Array) -> Array:
        """``x`` with zeros around it, in kept memory; ``x`` itself when no window leaves it."""
        win = self._win
        sizes = win.padded
        if sizes == win.source and not any(win.begin):
            return x
        y = scratch.take("conv border", (*x.shape[:2], *sizes), x.dtype)
        inner: tuple[slice, ...] = (slice(None), slice(None))
        for begin, size in zip(win.begin, win.source, strict=True):
            y[(*inner, slice(0, begin))] = 0
            y[(*inner, slice(begin + size, None))] = 0
            inner = (*inner, slice(begin, begin + size))
        y[inner] = x
        return y

    def _run_tile(self, x: Array, y: Array, residual: Array | None, group: int, first: int) -> None:
        outputs = self._filters.matrices.shape[1]
        some = slice(group, group + self._groups)
        channels = slice(group * outputs, (group + self._groups) * outputs)
        rows = min(self._rows, self._win.target[0] - first)
        points = slice(first * self._line, (first + rows) * self._line)
        matrices = self._filters.matrices[some]
        unrolled = self._unrolled(x, some, matrices.shape, first, rows)
        tile = y[channels, points]
        bias = None if self._filters.bias is None else self._filters.bias[channels]
        other = None if residual is None else residual[channels, points]
        if len(matrices) == 1:
            self._multiply(matrices[0], unrolled[0], tile, bias, other)
        else:  # a view even of a strided tile: only its first axis is split
            product(matrices, unrolled, tile.reshape(*matrices.shape[:2], tile.shape[1]))
            finish(tile, bias, self._epilogue, other)

    def _multiply(
        self, matrix: Array, unrolled: Array, tile: Array, bias: Array | None, residual: Array | None
    ) -> None:
        """One group's product, split by outputs: what follows finds them in the cache."""

        def make(part: Part) -> None:
            own = tile[part]
            product(matrix[part[0]], unrolled[:, part[1]], own)
            other = None if residual is None else residual[part]
            finish(own, None if bias is None else bias[part[0]], self._epilogue, other)

        (outputs, columns), points = matrix.shape, tile.shape[1]
        each(make, parts(outputs, points, columns), outputs * points * columns)

    def _unrolled(self, x: Array, some: slice, shape: tuple[int, ...], first: int, rows: int) -> Array:
        """(groups, columns, points) of some groups and output rows."""
        win, packed = self._win, self._filters
        flat = scratch.take("conv columns", (shape[0], shape[2], rows * self._line), x.dtype)
        target = (rows, *win.target[1:])
        channels = x.shape[0] // packed.matrices.shape[0]
        part = x[some.start * channels : some.stop * channels, first * win.strides[0] :]
        windows = as_strided(
            part,
            (part.shape[0], *win.kernel, *target),
            (
                x.strides[0],
                *(stride * d for stride, d in zip(x.strides[1:], win.dilations, strict=True)),
                *(stride * s for stride, s in zip(x.strides[1:], win.strides, strict=True)),
            ),
        )
        if packed.bias_inside:
            np.copyto(flat[0, :-1].reshape(windows.shape), windows)
            flat[0, -1] = 1
        else:
            np.copyto(flat.reshape(windows.shape), windows)
        return flat


class PointwisePlan:
    """A convolution by single points at stride 1: the input is its own matrix of columns."""

    def __init__(self, target: tuple[int, ...], packed: Filters, epilogue: Epilogue | None) -> None:
        self._target = target
        self._filters = packed
        self._epilogue = epilogue

    def run(self, x: Array, residual: Array | None = None) -> Array:
        """The convolution of ``x``, finished with tiles of ``residual``."""
        packed = self._filters
        groups, outputs, columns = packed.matrices.shape
        batch, points = x.shape[0], math.prod(self._target)
        y = room.empty((batch, packed.outputs, *self._target), x.dtype)
        source, target = x.reshape(batch, groups, columns, points), y.reshape(batch, groups, outputs, points)
        bias = None if packed.bias is None else packed.bias.reshape(groups, outputs, 1)
        other = None if residual is None else residual.reshape(target.shape)

        def make(task: tuple[int, int, Part]) -> None:
            image, group, part = task
            tile = target[image, group][part]
            product(packed.matrices[group, part[0]], source[image, group][:, part[1]], tile)
            own = None if bias is None else bias[group, part[0]]
            finish(tile, own, self._epilogue, None if other is None else other[image, group][part])

        tasks = list(itertools.product(range(batch), range(groups), parts(outputs, points, columns)))
        if len(tasks) == 1 and is_alone(packed.matrices[0], source[0, 0]):
            make(tasks[0])
            return y
        with one_blas_thread:
            each(make, tasks, batch * groups * outputs * points * columns)
        return y


def finish(tile: Array, bias: Array | None, epilogue: Epilogue | None, residual: Array | None) -> None:
    """What follows a product, while it is in the cache."""
    if bias is not None:
        np.add(tile, bias, out=tile)
    if epilogue is not None:
        epilogue(tile, residual)
