"""The gamma function's logarithm and its derivative, and the inverse of the error function, which ONNX lacks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from entrepot.exporters.functions.series import LANCZOS
from entrepot.exporters.torch.translations.precision import in_double
from entrepot.exporters.torch.translations.zeta import zeta_right

aten = torch.ops.aten

# M. Giles, "Approximating the erfinv function": near 0, and near -1 and 1.
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


@in_double
def lgamma(x: torch.Tensor) -> torch.Tensor:
    """Log |gamma(x)|, below one half by reflection."""
    left = x < 0.5
    z = torch.where(left, 1 - x, x) - 1
    series = torch.full_like(z, 0.99999999999980993) + sum(
        number / (z + place) for place, number in enumerate(LANCZOS, 1)
    )
    shifted = z + 7.5
    value = 0.5 * math.log(2 * math.pi) + (z + 0.5) * shifted.log() - shifted + series.log()
    turned = (math.pi / (math.pi * (x - x.round())).sin().abs()).log() - value
    value = torch.where((x == 1) | (x == 2), 0.0, value)
    return torch.where(x.isinf(), torch.inf, torch.where(left, turned, value))


@in_double
def multigammaln(x: torch.Tensor, order: int) -> torch.Tensor:
    """The logarithm of the multivariate gamma function, a product of ordinary ones."""
    value = torch.full_like(x, order * (order - 1) / 4 * math.log(math.pi))
    for step in range(order):
        value = value + lgamma(x - step / 2)
    return value


@in_double
def digamma(x: torch.Tensor) -> torch.Tensor:
    """The derivative of log gamma, by its expansion far from 0, and by recurrence and reflection near it."""
    left = x < 0.5
    z = torch.where(left, 1 - x, x)
    value = torch.zeros_like(z)
    for step in range(10):
        value = value - 1 / (z + step)
    z = z + 10
    inverse = 1 / (z * z)
    value = value + z.log() - 0.5 / z
    value = value - inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse / 132))))
    value = torch.where(left, value - math.pi * _cotangent(x), value)
    value = torch.where(left & (x == x.floor()), torch.nan, value)
    return torch.where(x == 0, -x.reciprocal(), value)


def polygamma(order: int, input: torch.Tensor) -> torch.Tensor:
    """The derivatives of digamma, by Hurwitz's zeta function and, below one half, its reflection."""
    if order == 0:
        return digamma(input)
    return _polygamma(input, order)


@in_double
def _polygamma(x: torch.Tensor, order: int) -> torch.Tensor:
    left = x < 0.5
    value = zeta_right(order + 1, torch.where(left, 1 - x, x))
    turned = _cotangent_sum(order + 1, x) + (-1) ** order * value
    value = torch.where(left, torch.where((x == x.floor()) & ~x.isinf(), torch.inf, turned), value)
    if order > 1:  # as in torch
        value = torch.where(x.isinf(), torch.where(x < 0, torch.inf, torch.nan), value)
    return (-1) ** (order + 1) * math.factorial(order) * value


def _cotangent_sum(power: int, x: torch.Tensor) -> torch.Tensor:
    """The sum of 1 / (x + k)^power over all whole k: a derivative of pi cot(pi x), a polynomial of the cotangent."""
    numbers = [0.0, 1.0]  # of 1, c, c², ...
    for _ in range(power - 1):  # c' = -pi (1 + c²)
        slope = [at * number for at, number in enumerate(numbers)][1:]
        numbers = [-(a + b) for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope], strict=True)]
    cotangent = _cotangent(x)
    value = torch.zeros_like(x)
    for number in reversed(numbers):
        value = value * cotangent + number
    return value * ((-1) ** (power - 1) * math.pi**power / math.factorial(power - 1))


def _cotangent(x: torch.Tensor) -> torch.Tensor:
    """cot(pi x), from the fractional part of x."""
    turn = math.pi * (x - x.round())
    return turn.cos() / turn.sin()


def erfinv(input: torch.Tensor) -> torch.Tensor:
    """Giles' polynomials, which are exact to single precision, followed by Newton steps for doubles."""
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


DECOMPOSITIONS = {
    aten.lgamma.default: lgamma,
    aten.mvlgamma.default: multigammaln,
    aten.digamma.default: digamma,
    aten.polygamma.default: polygamma,
    aten.erfinv.default: erfinv,
}
