"""3x3 convolutions by Winograd's F(2x2, 3x3): 16 products for each four results instead of 36.

Its constants are 1 and 1/2, so that results round about as those of direct sums do. An infinity or a NaN would spread
over the four results of a tile: images that may hold one are for another plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor

from entrepot.runtime import heap
from entrepot.runtime.kernels.window import Window
from entrepot.runtime.providers.torch import private, vectors
from entrepot.runtime.providers.torch.convolutions.plans import Fixed, Plan
from entrepot.runtime.providers.torch.convolutions.reach import LIMIT

CHANNELS = 256
"""Channels, on either side, from which what is saved is more than the transforms cost."""

TILES = 48
"""Tiles from which the products are that large that their weights, nearly twice as many as before, pay."""

CHANNELS_NARROW, WORK_NARROW = 128, 1 << 22
"""Channels, and multiplications of one product, where oneDNN multiplies because MKL is slow."""

_BYTES = 5 << 20
"""Memory that a pass over some of the tiles works on, so that it stays in a core's cache."""

_BYTES_NARROW = 8 << 20
"""The same where oneDNN multiplies, which gains more by large products."""

_WHOLE = 10
"""The product that takes part in each of the four results once, with a plus: what is added there is added to all."""

_KERNEL = torch.tensor([[1, 0, 0], [0, 0, -1], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5]], dtype=torch.float64)
"""Of each axis; the order is that in which differences of two points come before sums."""


def fits(window: Window, weights: Tensor, group: int) -> bool:
    """Whether the transform is possible."""
    return _is_of_squares(window, group) and bool((weights.abs() < LIMIT).all())


def suits(window: Window, weights: Tensor, group: int, images: int) -> bool:
    """Whether the transform is possible and pays."""
    if not _is_of_squares(window, group):
        return False
    outputs, inputs = weights.shape[:2]
    least, work = (CHANNELS_NARROW, WORK_NARROW) if vectors.is_mkl_narrow() else (CHANNELS, 0)
    tiles = images * math.prod(_tiles(window))
    pays = min(outputs, inputs) >= least and tiles >= TILES and tiles * outputs * inputs >= work
    return pays and fits(window, weights, group)


def _is_of_squares(window: Window, group: int) -> bool:
    is_square = (window.kernel, window.strides, window.dilations) == ((3, 3), (1, 1), (1, 1))
    return is_square and group == 1 and not (vectors.is_mkl_narrow() and private.linear() is None)


def _tiles(window: Window) -> tuple[int, int]:
    down, right = window.target
    return (down + 1) // 2, (right + 1) // 2


class Transformed:
    """Weights of the 16 products, made when they are first used."""

    def __init__(self, weights: Tensor) -> None:
        self._given = weights

    @cached_property
    def matrices(self) -> Tensor:
        """(16, inputs, outputs), columns of the window first; rounded once."""
        return self._transformed().contiguous()

    def _transformed(self) -> Tensor:
        return torch.einsum("ai,bj,ocij->baco", _KERNEL, _KERNEL, self._given.double()).flatten(0, 1).float()

    @cached_property
    def packed(self) -> list[Callable[[Tensor, Tensor | None], Tensor]]:
        """The same 16 as products with something added to each row, for oneDNN."""
        made = private.linear()
        assert made is not None
        return [_product(made, matrix.t().contiguous()) for matrix in self._transformed()]


def _product(made: private.Linear, weights: Tensor) -> Callable[[Tensor, Tensor | None], Tensor]:
    run, packed, unread = made.run, made.pack(weights, 0), torch.empty(0)
    if (memory := private.memory_of(packed)) is not None:
        heap.gather(*memory)
    return lambda x, bias: run(x, packed, unread, bias, 0)


class WinogradPlan:
    """One convolution at one shape; ``direct`` makes the plan for images that may hold an infinity or a NaN."""

    def __init__(
        self, fixed: Fixed, weights: Transformed, window: Window, shape: torch.Size, direct: Callable[[], Plan]
    ) -> None:
        self._fixed, self._weights, self._shape, self._direct = fixed, weights, shape, direct
        self._tiles, (top, left) = _tiles(window), window.begin
        down, right = (2 * tiles + 2 - size for tiles, size in zip(self._tiles, window.source, strict=True))
        self._around = [0, 0, left, right - left, top, down - top]
        self.worth = 4 * shape.numel()

    def __call__(self, x: Tensor, residual: Tensor | None, onto: bool, is_bounded: bool) -> Tensor:
        """The activation runs on its own."""
        if not is_bounded:
            return self._direct()(x, residual, onto, is_bounded)
        images, outputs, *plane = self._shape
        down, right = self._tiles
        around = torch.constant_pad_nd(x.permute(0, 2, 3, 1), self._around).contiguous()
        y = x.new_empty((images, 2 * down, 2 * right, outputs))
        for some, first, last in self._passes(x.shape[1] + outputs):
            self._run(around[some, 2 * first : 2 * last + 2], y[some, 2 * first : 2 * last])
        whole = y[:, : plane[0], : plane[1]].contiguous()
        return self._fixed.ended(whole.permute(0, 3, 1, 2), residual)

    def _passes(self, channels: int) -> list[tuple[slice, int, int]]:
        """Images, and from which row of tiles to which."""
        (images, *_), (down, right) = self._shape, self._tiles
        rows = max(1, (_BYTES_NARROW if vectors.is_mkl_narrow() else _BYTES) // (64 * channels * right))
        if rows < down:
            return [(slice(n, n + 1), at, min(at + rows, down)) for n in range(images) for at in range(0, down, rows)]
        step = rows // down
        return [(slice(n, n + step), 0, down) for n in range(0, images, step)]

    def _run(self, x: Tensor, y: Tensor) -> None:
        """Fill ``y`` (images, rows, columns, outputs) from ``x``, which has one point more on each side."""
        images, rows, columns, outputs = y.shape
        down, right, inputs = rows // 2, columns // 2, x.shape[-1]
        points = _points(_points(x, 1, down), 3, right)  # (of columns, of rows, image, row, column, channel)
        by_column = self._by_column(points.view(16, -1, inputs)).view(2, 4, images, down, right, outputs)
        tiled = y.view(images, down, 2, right, 2, outputs).permute(2, 4, 0, 1, 3, 5)
        _results(*by_column.unbind(1), results=tiled)

    def _by_column(self, points: Tensor) -> Tensor:
        """(2, 4, tile, output): the products, taken together along the columns."""
        bias, size = self._fixed.bias, self._shape[1]
        by_column = points.new_empty((2, 4, points.shape[1], size))
        if vectors.is_mkl_narrow():
            made = self._weights.packed
            products = [made[at](points[at], bias if at == _WHOLE else None) for at in range(16)]
            for row in range(4):
                _results(*products[row::4], results=by_column[:, row])
            return by_column
        whole = torch.bmm(points, self._weights.matrices)
        if bias is not None:
            whole[_WHOLE].add_(bias)
        _results(*whole.view(4, 4, -1, size), results=by_column)
        return by_column


def _points(x: Tensor, axis: int, tiles: int) -> Tensor:
    """The four numbers for each tile along an axis, in front: differences and sums of points two apart and next."""
    shape, steps = list(x.shape), list(x.stride())
    shape[axis], step = tiles, steps[axis]
    steps[axis] = 2 * step

    def two_from(point: int) -> Tensor:
        return x.as_strided((2, *shape), (step, *steps), x.storage_offset() + point * step)

    points = x.new_empty((4, *shape))
    (second, _), third = two_from(1), two_from(2)
    torch.sub(two_from(0), third, out=points[:2])
    torch.add(third[0], second, out=points[2])
    torch.sub(third[0], second, out=points[3])
    return points


def _results(first: Tensor, second: Tensor, third: Tensor, fourth: Tensor, *, results: Tensor) -> None:
    """The two results along an axis from the four products."""
    torch.add(third, fourth, out=results[0])
    torch.sub(third, fourth, out=results[1])
    results[0] += first
    results[1] += second
