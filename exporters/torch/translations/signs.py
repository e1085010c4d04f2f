"""The sign of a number, zeros and NaNs included, and what depends on it.

ONNX compares zeros of both signs as equal; their reciprocals are infinities of different signs.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from onnxscript import opset20

from entrepot.exporters.torch.translations.precision import floating

aten = torch.ops.aten
op: Any = opset20


def signbit(input: torch.Tensor) -> Any:
    """Whether a number is negative; minus zero is. ONNX cannot tell the sign of a NaN, which counts as plus."""
    if not input.is_floating_point():
        return NotImplemented if input.dtype == torch.bool else input < 0
    return (input < 0) | (input.reciprocal() < 0)


def copysign(input: torch.Tensor, other: torch.Tensor | float) -> Any:
    """The magnitude of one number with the sign of another."""
    sign = other if isinstance(other, torch.Tensor) else torch.full((), other, dtype=input.dtype)
    kind = torch.promote_types(input.dtype, sign.dtype)
    size = (input if input.dtype == torch.bool else input.abs()).to(
        kind if kind.is_floating_point else torch.get_default_dtype()
    )
    return torch.where(_negative(sign), -size, size)


def sign(input: torch.Tensor) -> Any:
    """The truth is its own sign, which ONNX has of numbers alone."""
    return input.clone() if input.dtype == torch.bool else NotImplemented


def sign_of_real(input: torch.Tensor) -> Any:
    """The sign of what may be complex."""
    return NotImplemented if input.is_complex() else torch.sign(input)


def translate_sign(self: Any) -> Any:
    """-1, 0 or 1; 0 for a NaN, where ONNX has NaN."""
    if not self.dtype.is_floating_point():
        return op.Sign(self)
    return op.Where(op.IsNaN(self), op.CastLike(op.Constant(value_float=0.0), self), op.Sign(self))


def heaviside(input: torch.Tensor, values: torch.Tensor) -> Any:
    """0 below zero and for NaN, 1 above, ``values`` at zero."""
    return torch.where(input == 0, values, (input > 0).to(input.dtype))


def angle(input: torch.Tensor) -> torch.Tensor:
    """The angle of a real number: 0, or pi below zero."""
    whole = not input.is_floating_point() and not input.is_complex()
    return torch.where(_negative(input), math.pi, 0.0) if whole else _angle(input)


@floating
def _angle(input: torch.Tensor) -> torch.Tensor:
    return torch.where(input.isnan(), input, (input < 0).to(input.dtype) * math.pi)


def atan2(input: torch.Tensor, other: torch.Tensor) -> Any:
    """The angle of the point (other, input); torch.onnx (2.13) has the wrong side of a line for whole numbers."""
    kind = torch.result_type(input, other)
    if not kind.is_floating_point:
        kind = torch.get_default_dtype()
    return _angle_of_point(input.to(kind), other.to(kind))


@floating
def _angle_of_point(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """By the arctangent of a number in [0, 1] and its octant."""
    height, width = input.abs(), other.abs()
    larger, smaller = torch.maximum(height, width), torch.minimum(height, width)
    level = (height == width) & (height != 0)  # also for two infinities
    ratio = torch.where(level, 1.0, smaller / torch.where(larger == 0, 1.0, larger))
    angle = ratio.atan()
    angle = torch.where(height > width, math.pi / 2 - angle, angle)
    angle = torch.where(_negative(other), math.pi - angle, angle)
    angle = torch.where(_negative(input), -angle, angle)
    return torch.where(input.isnan() | other.isnan(), torch.nan, angle)


def _negative(input: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = signbit(input)
    return torch.zeros_like(input) if found is NotImplemented else found


DECOMPOSITIONS = {
    aten.signbit.default: signbit,
    aten.copysign.Tensor: copysign,
    aten.copysign.Scalar: copysign,
    aten.sign.default: sign,
    aten.sgn.default: sign_of_real,
    aten.heaviside.default: heaviside,
    aten.angle.default: angle,
    aten.atan2.default: atan2,
}
TRANSLATIONS = {aten.sign.default: translate_sign}
