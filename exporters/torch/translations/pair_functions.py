"""Functions of complex numbers, written with those of their real and imaginary parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from entrepot.exporters.torch.translations.pair import Pair, bilinear, is_complex, pair_of, real_kind

aten = torch.ops.aten


def _div(one: Any, other: Any, rounding_mode: None = None) -> Pair:
    """Scaled by the larger part of the divisor, as Smith does, against overflow; torch rounds no complex numbers."""
    one = pair_of(one)
    if not is_complex(other):
        return Pair(one.re / other, one.im / other)
    if isinstance(other, complex):
        return _by_number(one, other)
    re, im = pair_of(other).re, pair_of(other).im
    wide = re.abs() >= im.abs()
    larger, smaller = torch.where(wide, re, im), torch.where(wide, im, re)
    ratio = smaller / larger
    scale = larger + smaller * ratio
    along, across = torch.where(wide, one.re, one.im), torch.where(wide, one.im, one.re)
    imaginary = across - along * ratio
    return Pair((along + across * ratio) / scale, torch.where(wide, imaginary, -imaginary) / scale)


def _by_number(one: Pair, number: complex) -> Pair:
    if abs(number.real) < abs(number.imag):
        return _by_number(Pair(one.im, -one.re), complex(number.imag, -number.real))  # both divided by i
    ratio = number.imag / number.real if number else math.nan
    scale = number.real + number.imag * ratio
    return Pair((one.re + one.im * ratio) / scale, (one.im - one.re * ratio) / scale)


def _reciprocal(one: Pair) -> Pair:
    return _div(Pair(torch.ones_like(one.re), torch.zeros_like(one.im)), one)


def _abs(one: Pair) -> torch.Tensor:
    return torch.hypot(one.re, one.im)


def _angle(one: Pair) -> torch.Tensor:
    return torch.atan2(one.im, one.re)


def _polar(size: torch.Tensor, angle: torch.Tensor) -> Pair:
    return Pair(size * angle.cos(), size * angle.sin())


def _exp(one: Pair) -> Pair:
    return _polar(one.re.exp(), one.im)


def _log(one: Pair) -> Pair:
    return Pair(_abs(one).log(), _angle(one))


def _sqrt(one: Pair) -> Pair:
    """The root with a real part that is not negative."""
    size = _abs(one)
    along = ((size + one.re.abs()) / 2).sqrt()
    across = torch.where(along == 0, 0.0, one.im / (2 * torch.where(along == 0, 1.0, along)))
    positive, sign = one.re >= 0, torch.where(torch.signbit(one.im), -1.0, 1.0).to(one.re.dtype)
    return Pair(torch.where(positive, along, across.abs()), torch.where(positive, across, sign * along))


def _pow(one: Any, power: Any) -> Pair:
    if isinstance(power, int) and isinstance(one, Pair) and 0 <= power <= 8:
        result = Pair(torch.ones_like(one.re), torch.zeros_like(one.im))
        for _ in range(power):
            result = result * one
        return result
    if power == 0.5 and isinstance(one, Pair):
        return _sqrt(one)
    if not is_complex(one):
        one = torch.as_tensor(one)
        return _exp(pair_of(power) * one.log())
    return _exp(bilinear(torch.mul)(_log(pair_of(one)), power))


def _sin(one: Pair) -> Pair:
    return Pair(one.re.sin() * one.im.cosh(), one.re.cos() * one.im.sinh())


def _cos(one: Pair) -> Pair:
    return Pair(one.re.cos() * one.im.cosh(), -(one.re.sin() * one.im.sinh()))


def _sinh(one: Pair) -> Pair:
    return Pair(one.re.sinh() * one.im.cos(), one.re.cosh() * one.im.sin())


def _cosh(one: Pair) -> Pair:
    return Pair(one.re.cosh() * one.im.cos(), one.re.sinh() * one.im.sin())


def _tanh(one: Pair) -> Pair:
    """By the tangent of the imaginary part and the hyperbolic one of the real part, which cannot overflow."""
    hyperbolic, turn = one.re.tanh(), one.im.tan()
    return _div(Pair(hyperbolic, turn), Pair(torch.ones_like(turn), hyperbolic * turn))


def _tan(one: Pair) -> Pair:
    found = _tanh(Pair(-one.im, one.re))
    return Pair(found.im, -found.re)


def _sigmoid(one: Pair) -> Pair:
    return (_tanh(one * 0.5) + 1.0) * 0.5


def _silu(one: Pair) -> Pair:
    return one * _sigmoid(one)


def _sgn(one: Pair) -> Pair:
    size = _abs(one)
    safe = torch.where(size == 0, torch.ones_like(size), size)
    return Pair(one.re / safe, one.im / safe)


def _lerp(start: Any, end: Any, weight: Any) -> Pair:
    return pair_of(start) + (pair_of(end) - pair_of(start)) * weight


def _is_close(one: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> torch.Tensor:
    """Whether they are as near as torch says: equal, or within what the size of the second allows."""
    one, two = pair_of(one), pair_of(other)
    gap, size = _abs(one - two), _abs(two)
    close = ((one.re == two.re) & (one.im == two.im)) | (gap.isfinite() & (gap <= atol + rtol * size))
    if not equal_nan:
        return close
    return close | ((one.re.isnan() | one.im.isnan()) & (two.re.isnan() | two.im.isnan()))


def _vector_norm(one: Pair, *args: Any, **how: Any) -> torch.Tensor:
    return torch.linalg.vector_norm(_abs(one), *args, **real_kind(how))


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    aten.polar: _polar,
    aten.div: _div,
    aten.reciprocal: _reciprocal,
    aten.abs: _abs,
    aten.angle: _angle,
    aten.exp: _exp,
    aten.expm1: lambda one: _exp(one) - 1.0,
    aten.log: _log,
    aten.sqrt: _sqrt,
    aten.rsqrt: lambda one: _reciprocal(_sqrt(one)),
    aten.pow: _pow,
    aten.sin: _sin,
    aten.cos: _cos,
    aten.tan: _tan,
    aten.sinh: _sinh,
    aten.cosh: _cosh,
    aten.tanh: _tanh,
    aten.sigmoid: _sigmoid,
    aten.silu: _silu,
    aten.sgn: _sgn,
    aten.lerp: _lerp,
    aten.isclose: _is_close,
    aten.linalg_vector_norm: _vector_norm,
}
"""By operator."""
