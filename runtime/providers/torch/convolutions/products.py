"""Convolutions of single points as products: where there is little to do, oneDNN's look-up costs more than it saves."""

from __future__ import annotations

import math
from functools import cached_property

import torch
from torch import Tensor

from entrepot.runtime.kernels.window import Window
from entrepot.runtime.providers.torch import vectors
from entrepot.runtime.providers.torch.convolutions.plans import Fixed

FEW = 1 << 23
"""Multiplications up to which that holds."""

FEW_NARROW = 1 << 20
"""The same where MKL is slow."""

_ROWS = 1 << 10
"""Results in each channel up to which it holds."""


class Matrix:
    """The weights of one convolution as a product takes them, arranged once."""

    def __init__(self, fixed: Fixed) -> None:
        self._fixed = fixed

    def fits(self, window: Window, group: int) -> bool:
        """Whether the convolution is a product."""
        is_of_points = self._fixed.weights.ndim == 4 and window.points == 1 and not any((*window.begin, *window.end))
        return is_of_points and group == 1 and set(window.strides) == {1}

    def suits(self, window: Window, group: int, images: int) -> bool:
        """Whether the convolution is a product, and a small one."""
        weights, rows = self._fixed.weights, images * math.prod(window.target)
        if not self.fits(window, group):
            return False
        return 0 < rows <= _ROWS and 0 < rows * weights.numel() <= (FEW_NARROW if vectors.is_mkl_narrow() else FEW)

    @cached_property
    def _by_input(self) -> Tensor:
        return self._fixed.weights.flatten(1).t().contiguous()

    def product(self, points: Tensor) -> Tensor:
        """Rows of points by the weights, and plus the bias."""
        bias = self._fixed.bias
        return torch.mm(points, self._by_input) if bias is None else torch.addmm(bias, points, self._by_input)


class ProductPlan:
    """One convolution at one shape, as a product of a row of channels for each of its results."""

    worth = 0

    def __init__(self, fixed: Fixed, matrix: Matrix, shape: torch.Size) -> None:
        self._fixed, self._matrix, self._shape = fixed, matrix, shape

    def __call__(self, x: Tensor, residual: Tensor | None, onto: bool, is_bounded: bool) -> Tensor:
        """The activation runs on its own."""
        images, _, *plane = self._shape
        y = self._matrix.product(x.permute(0, 2, 3, 1).reshape(-1, x.shape[1]))
        return self._fixed.ended(y.view(images, *plane, -1).permute(0, 3, 1, 2), residual)
