"""Convolutions of single points as products: few enough rows are multiplied faster by MKL than by oneDNN."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor

from entrepot.runtime.kernels.window import Window
from entrepot.runtime.providers.torch import private
from entrepot.runtime.providers.torch.convolutions.plans import Fixed

Product = Callable[[Tensor], Tensor]

FEW = 1 << 23
"""Multiplications up to which oneDNN's look-up costs more than its packing saves, at up to twice ``ROWS``."""

ROWS = 1 << 9
"""Results in each channel up to which it is a product in any case."""

_NARROW, _ROWS_OF_NARROW, _ROWS_OF_ANY = 640, 64, 16
"""Outputs and rows up to which BLAS is as quick with weights as they are; and rows up to which it is with any."""


class Products:
    """One convolution as products, for whose forms of the weights each is made once."""

    def __init__(self, fixed: Fixed) -> None:
        self._fixed = fixed
        self._packed_for: tuple[int, private.Packed] | None = None

    def at(self, window: Window, group: int, images: int) -> Product | None:
        """What multiplies rows of points with the weights and adds the bias; ``None`` where oneDNN is quicker."""
        weights, rows = self._fixed.weights, images * math.prod(window.target)
        if weights.ndim != 4 or group != 1 or not rows or not weights.numel():
            return None
        if window.points > 1 or any((*window.begin, *window.end)):
            return None
        is_little = rows <= 2 * ROWS and rows * weights.numel() <= FEW
        return self._plain if is_little else self._of_rows(rows) if rows <= ROWS else None

    def _of_rows(self, rows: int) -> Product | None:
        is_narrow = rows <= _ROWS_OF_NARROW and self._fixed.weights.shape[0] <= _NARROW
        return self._plain if rows <= _ROWS_OF_ANY or is_narrow else self._packed(rows)

    @cached_property
    def _by_output(self) -> Tensor:
        return self._fixed.weights.flatten(1).contiguous()

    @cached_property
    def _by_input(self) -> Tensor:
        return self._fixed.weights.flatten(1).t().contiguous()

    def _plain(self, points: Tensor) -> Tensor:
        bias = self._fixed.bias
        return torch.mm(points, self._by_input) if bias is None else torch.addmm(bias, points, self._by_input)

    def _packed(self, rows: int) -> Product | None:
        """What is packed is right for one number of rows: the first."""
        made = private.linear_of_rows()
        if made is None:
            return None
        if self._packed_for is None:
            self._packed_for = rows, made.pack(self._by_output, rows)
        if self._packed_for[0] != rows:
            return None
        run, packed, like, bias = made.run, self._packed_for[1], self._by_output, self._fixed.bias
        return lambda points: run(points, packed, like, bias, rows)


class ProductPlan:
    """One convolution at one shape, by ``product`` of a row of channels for each of its results."""

    worth = 0

    def __init__(self, fixed: Fixed, product: Product, window: Window, shape: torch.Size) -> None:
        self._fixed, self._product, self._shape, self._steps = fixed, product, shape, window.strides

    def __call__(self, x: Tensor, residual: Tensor | None, onto: bool, is_bounded: bool) -> Tensor:
        """The activation runs on its own."""
        (images, _, *plane), (down, right) = self._shape, self._steps
        points = x if down == right == 1 else x[:, :, ::down, ::right]
        y = self._product(points.permute(0, 2, 3, 1).reshape(-1, x.shape[1]))
        return self._fixed.ended(y.view(images, *plane, -1).permute(0, 3, 1, 2), residual)
