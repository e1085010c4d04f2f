"""The gamma function's logarithm and its derivative, and the inverse of the error function, which ONNX lacks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

# Lanczos' approximation with g = 7 and nine terms: relative error below 1e-15.
_LANCZOS = (
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)

# M. Giles, "Approximating the erfinv function": towards 0, and towards -1 and 1.
_NEAR = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_FAR = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)


def lgamma(input: torch.Tensor) -> torch.Tensor:
    """Log |gamma(x)|, below one half by reflection."""
    x = input.to(torch.float64)
    left = x < 0.5
    z = torch.where(left, 1 - x, x) - 1
    series = torch.full_like(z, 0.99999999999980993) + sum(
        number / (z + place) for place, number in enumerate(_LANCZOS, 1)
    )
    shifted = z + 7.5
    value = 0.5 * math.log(2 * math.pi) + (z + 0.5) * shifted.log() - shifted + series.log()
    turned = (math.pi / (math.pi * (x - x.floor())).sin().abs()).log() - value
    return torch.where(left, turned, value).to(_float(input))


def digamma(input: torch.Tensor) -> torch.Tensor:
    """The derivative of log gamma, by its expansion far from 0 and recurrence and reflection towards it."""
    x = input.to(torch.float64)
    left = x < 0.5
    z = torch.where(left, 1 - x, x)
    value = torch.zeros_like(z)
    for step in range(10):
        value = value - 1 / (z + step)
    z = z + 10
    inverse = 1 / (z * z)
    value = value + z.log() - 0.5 / z
    value = value - inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse / 132))))
    return torch.where(left, value - math.pi * (math.pi * x).cos() / (math.pi * x).sin(), value).to(_float(input))


def erfinv(input: torch.Tensor) -> torch.Tensor:
    """Giles' polynomials, which are exact to single precision, and for doubles steps of Newton's method."""
    x = input.to(torch.float64)
    inside = x.clamp(-1 + 1e-15, 1 - 1e-15)
    w = -torch.log1p(-inside * inside)
    y = torch.where(w < 5, _polynomial(_NEAR, w - 2.5), _polynomial(_FAR, w.sqrt() - 3)) * inside
    for _ in range(2 if input.dtype == torch.float64 else 0):  # onnxruntime has no Erf of doubles
        y = y - (y.erf() - inside) * (math.sqrt(math.pi) / 2) * (y * y).exp()
    y = torch.where(x.abs() < 1, y, torch.where(x.abs() == 1, x * torch.inf, torch.nan))
    return y.to(_float(input))


def _polynomial(numbers: Sequence[float], x: torch.Tensor) -> torch.Tensor:
    value = torch.full_like(x, numbers[0])
    for number in numbers[1:]:
        value = value * x + number
    return value


def _float(input: torch.Tensor) -> torch.dtype:
    return input.dtype if input.is_floating_point() else torch.get_default_dtype()


REPLACEMENTS: dict[Any, Any] = {
    torch.lgamma: lgamma,
    torch.Tensor.lgamma: lgamma,
    torch.special.gammaln: lgamma,
    torch.digamma: digamma,
    torch.Tensor.digamma: digamma,
    torch.special.digamma: digamma,
    torch.erfinv: erfinv,
    torch.Tensor.erfinv: erfinv,
    torch.special.erfinv: erfinv,
}
