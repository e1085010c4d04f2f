"""Convolutions of any window by weights packed for oneDNN."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from entrepot.runtime.kernels.window import Window
from entrepot.runtime.providers.torch import private
from entrepot.runtime.providers.torch.convolutions.plans import Fixed

LARGE = 1 << 18
"""Elements of a result from which oneDNN adds to it faster than a call of its own does."""


class Geometry(NamedTuple):
    """A window over two axes.

    Attributes:
        arguments: Padding, strides, dilations and groups.
        around: Zeros that are put around the input first, as ``constant_pad_nd`` takes them.
    """

    arguments: tuple[list[int], list[int], list[int], int]
    around: list[int]

    @classmethod
    def of(cls, window: Window, group: int) -> Geometry:
        """One axis is a plane of one row; what is padded unevenly is padded first."""
        row, evenly = [1] * (2 - len(window.kernel)), window.begin == window.end
        pads = [*[0] * len(row), *(window.begin if evenly else [0] * len(window.begin))]
        pairs = zip(window.begin[::-1], window.end[::-1], strict=True)
        around = [] if evenly else [width for pair in pairs for width in pair]
        return cls((pads, [*row, *window.strides], [*row, *window.dilations], group), around)


class PackedPlan:
    """One convolution at one shape, by weights that were packed with ``geometry``."""

    def __init__(self, fixed: Fixed, packed: private.Packed, geometry: Geometry, shape: torch.Size) -> None:
        self._fixed, self._packed, self._shape, self._around = fixed, packed, shape, geometry.around
        self._arguments = (packed, fixed.bias, *geometry.arguments)
        self.worth = 0 if fixed.post is None else shape.numel()

    def __call__(self, x: Tensor, residual: Tensor | None, onto: bool, is_bounded: bool) -> Tensor:
        """With the activation inside where there is no NaN that it could hide."""
        fixed, post = self._fixed, self._fixed.post if is_bounded else None
        if self._around:
            x = torch.constant_pad_nd(x, self._around)
        if len(self._shape) == 3:
            y = fixed.made.run(x.unsqueeze(2), *self._arguments, post if residual is None else None).squeeze(2)
            return y if residual is None and post is not None else fixed.ended(y, residual)
        if residual is not None:
            return self._onto_or_beside(x, residual, post, onto)
        y = fixed.made.run(x, *self._arguments, post)
        return y if post is not None else fixed.ended(y)

    def _onto_or_beside(self, x: Tensor, residual: Tensor, post: private.Post | None, onto: bool) -> Tensor:
        fixed, joined = self._fixed, post if post in private.AFTER_SUM else None
        if residual.shape != self._shape or not (onto or joined or self._shape.numel() >= LARGE):
            return fixed.ended(fixed.made.run(x, *self._arguments, None), residual)
        add = fixed.made.run_onto if onto else fixed.made.run_and_add
        y = add(x, residual, *self._arguments, joined)
        return y if joined is not None else fixed.ended(y)
