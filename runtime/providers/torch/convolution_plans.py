"""How a convolution is computed at one shape: by weights packed for oneDNN, or as a product where that is quicker.

Results are laid out channels last, which is how oneDNN reads them fastest and how most other kernels of torch leave
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from entrepot.runtime.kernels import convolution as shared
from entrepot.runtime.kernels.convolution import conv_window
from entrepot.runtime.kernels.window import Window
from entrepot.runtime.providers.torch import private
from entrepot.runtime.providers.torch.backend import TORCH
from entrepot.runtime.providers.torch.epilogues import Activation
from entrepot.runtime.room import claim

_SHAPES_KEPT = 64

LARGE = 1 << 18
"""Elements of a result from which oneDNN adds to it faster than a call of its own does."""

FEW = 1 << 23
"""Multiplications of a convolution of single points up to which oneDNN's look-up costs more than its packing saves."""

_ROWS = 1 << 10
"""Points up to which that holds."""


@dataclass(frozen=True)
class Fixed:
    """What a convolution has at every shape."""

    made: private.Convolution
    attributes: dict[str, Any]
    weights: Tensor
    bias: Tensor | None
    activation: Activation | None

    @property
    def post(self) -> private.Post | None:
        """The activation in oneDNN's words."""
        return None if self.activation is None else self.activation.post

    def ended(self, y: Tensor) -> Tensor:
        """A result after the activation, which changes it in place."""
        if self.activation is not None:
            self.activation.change(y)
        return y


class Plan(Protocol):
    """A convolution at one shape.

    Attributes:
        size: Elements of the result.
    """

    size: int

    def __call__(self, x: Tensor, residual: Tensor | None, onto: bool, is_bounded: bool) -> Tensor:
        """The result after the activation.

        Args:
            x: Of the shape that was planned for.
            residual: What is added before the activation.
            onto: Whether the result may take the memory of ``residual``.
            is_bounded: Whether there is certainly no NaN in the convolution's result.
        """


class Planner:
    """Looks once at each shape; weights are packed at the first one, and are right at all others."""

    def __init__(self, fixed: Fixed) -> None:
        self._fixed = fixed
        self._packed: Any = None
        self._plans: dict[torch.Size, Plan] = {}

    def at(self, shape: torch.Size) -> Plan:
        """What computes results for inputs of one shape."""
        plan = self._plans.get(shape)
        if plan is None:
            if len(self._plans) >= _SHAPES_KEPT:
                self._plans.clear()
            plan = self._plans[shape] = self._planned(shape)
        return plan

    def _planned(self, shape: torch.Size) -> Plan:
        given, weights = self._fixed.attributes, self._fixed.weights
        dilations, pads, strides = (given.get(name) for name in ("dilations", "pads", "strides"))
        kernel, group, auto_pad = given.get("kernel_shape"), given.get("group", 1), given.get("auto_pad", "NOTSET")
        window = conv_window(shape, weights.shape, kernel, group, auto_pad, dilations, pads, strides)
        result = torch.Size([shape[0], weights.shape[0], *window.target])
        claim(result, 4)
        if not shape.numel():
            return _OfNothing(self._fixed, result.numel())
        if _is_few_points(window, weights, group, result):
            return _Points(self._fixed, result)
        geometry = _geometry(window, group, flat=len(shape) == 3)
        return _Packed(self._fixed, self._pack(geometry.arguments, shape), geometry, result)

    def _pack(self, arguments: tuple[Any, ...], shape: torch.Size) -> Any:
        if self._packed is None:
            weights, sizes = self._fixed.weights, list(shape)
            if weights.ndim == 3:
                weights, sizes = weights.unsqueeze(2), [*sizes[:2], 1, *sizes[2:]]
            self._packed = self._fixed.made.pack(weights.contiguous(), *arguments, sizes)
        return self._packed


class _Geometry(NamedTuple):
    """A window over two axes.

    Attributes:
        arguments: Padding, strides, dilations and groups.
        around: Zeros that are put around the input first, as ``constant_pad_nd`` takes them.
    """

    arguments: tuple[list[int], list[int], list[int], int]
    around: list[int]


def _geometry(window: Window, group: int, *, flat: bool) -> _Geometry:
    """One axis is a plane of one row; what is padded unevenly is padded first."""
    row, evenly = [1] * flat, window.begin == window.end
    pads = [*[0] * flat, *(window.begin if evenly else [0] * len(window.begin))]
    pairs = zip(window.begin[::-1], window.end[::-1], strict=True)
    around = [] if evenly else [width for pair in pairs for width in pair]
    return _Geometry((pads, [*row, *window.strides], [*row, *window.dilations], group), around)


def _is_few_points(window: Window, weights: Tensor, group: int, result: torch.Size) -> bool:
    """Whether this is a product of small matrices: every point of an image by the same weights."""
    is_point = weights.ndim == 4 and group == 1 and tuple(weights.shape[2:]) == (1, 1)
    if not is_point or any((*window.begin, *window.end)) or set(window.strides) != {1}:
        return False
    points = result.numel() // weights.shape[0] if weights.shape[0] else 0
    return 0 < points <= _ROWS and result.numel() * weights.shape[1] <= FEW


class _Packed:
    def __init__(self, fixed: Fixed, packed: Any, geometry: _Geometry, shape: torch.Size) -> None:
        self._fixed, self._packed, self._shape, self._around = fixed, packed, shape, geometry.around
        self._arguments = (packed, fixed.bias, *geometry.arguments)
        self.size = shape.numel()

    def __call__(self, x: Tensor, residual: Tensor | None, onto: bool, is_bounded: bool) -> Tensor:
        fixed, post = self._fixed, self._fixed.post if is_bounded else None
        if self._around:
            x = torch.constant_pad_nd(x, self._around)
        if len(self._shape) == 3:
            y = fixed.made.run(x.unsqueeze(2), *self._arguments, post if residual is None else None).squeeze(2)
            return y if residual is None and post is not None else fixed.ended(_added(y, residual))
        if residual is not None:
            return self._onto_or_beside(x, residual, post, onto)
        y = fixed.made.run(x, *self._arguments, post)
        return y if post is not None else fixed.ended(y)

    def _onto_or_beside(self, x: Tensor, residual: Tensor, post: private.Post | None, onto: bool) -> Tensor:
        fixed, joined = self._fixed, post if post in private.AFTER_SUM else None
        if residual.shape != self._shape or not (onto or joined or self.size >= LARGE):
            return fixed.ended(_added(fixed.made.run(x, *self._arguments, None), residual))
        add = fixed.made.run_onto if onto else fixed.made.run_and_add
        y = add(x, residual, *self._arguments, joined)
        return y if joined is not None else fixed.ended(y)


class _Points:
    def __init__(self, fixed: Fixed, shape: torch.Size) -> None:
        self._fixed, self._shape = fixed, shape
        self._matrix = fixed.weights.flatten(1).t().contiguous()
        self.size = shape.numel()

    def __call__(self, x: Tensor, residual: Tensor | None, onto: bool, is_bounded: bool) -> Tensor:
        bias, (images, _, *plane) = self._fixed.bias, self._shape
        rows = x.permute(0, 2, 3, 1).reshape(-1, self._matrix.shape[0])
        y = torch.mm(rows, self._matrix) if bias is None else torch.addmm(bias, rows, self._matrix)
        return self._fixed.ended(_added(y.view(images, *plane, -1).permute(0, 3, 1, 2), residual))


class _OfNothing:
    def __init__(self, fixed: Fixed, size: int) -> None:
        self._fixed, self.size = fixed, size

    def __call__(self, x: Tensor, residual: Tensor | None, onto: bool, is_bounded: bool) -> Tensor:
        fixed = self._fixed
        y = shared.conv(TORCH, x, fixed.weights, fixed.bias, **fixed.attributes)
        return fixed.ended(_added(y, residual))


def _added(y: Tensor, residual: Tensor | None) -> Tensor:
    if residual is None:
        return y
    return y.add_(residual) if residual.shape == y.shape else y + residual
