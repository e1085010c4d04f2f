"""Hurwitz's zeta function."""

from __future__ import annotations

import math
from typing import Any

import torch

from entrepot.exporters.functions.series import BERNOULLI
from entrepot.exporters.torch.translations.precision import in_double

aten = torch.ops.aten


def zeta_right(power: Any, x: torch.Tensor) -> torch.Tensor:
    """The sum of 1 / (x + k)^power over all k, for positive x and powers above one, by the Euler-Maclaurin formula."""
    value = torch.zeros_like(x)
    for step in range(10):
        value = value + (x + step) ** -power
    far = x + 10
    last = far**-power
    rest = last * far / (power - 1) + last / 2
    factor = last * power / far
    for index, number in enumerate(BERNOULLI, 1):
        rest = rest + number / math.factorial(2 * index) * factor
        factor = factor * (power + 2 * index - 1) * (power + 2 * index) / (far * far)
    return torch.where(last > 1e-20 * value, value + rest, value)


@in_double
def zeta(power: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """For x below 0 only whole powers have a sum: that from the fractional part on, and a finite one before it."""
    whole = power == power.floor()
    left = x < 0
    part = torch.where(left, -x - (-x).floor(), 0.5)
    before = zeta_right(power, part) - zeta_right(power, torch.where(left, 1 - x, 1.0))
    odd = power / 2 != (power / 2).floor()
    value = zeta_right(power, torch.where(left, 1 - part, x)) + torch.where(
        left, torch.where(odd, -before, before), 0.0
    )
    value = torch.where(left & ~whole, torch.nan, value)
    value = torch.where(x.isposinf() | ((power > 1e26) & (x > 1)), torch.nan, value)  # torch's terms overflow there
    pole = (power == 1) | ((x <= 0) & (x == x.floor()))
    return torch.where(power < 1, torch.nan, torch.where(pole, torch.inf, value))


def _zeta_of_number(power: float, x: torch.Tensor) -> torch.Tensor:
    return zeta(torch.full_like(x, power), x)


def _zeta_at_number(power: torch.Tensor, x: float) -> torch.Tensor:
    return zeta(power, torch.full_like(power, x))


DECOMPOSITIONS = {
    aten.special_zeta.default: zeta,
    aten.special_zeta.self_scalar: _zeta_of_number,
    aten.special_zeta.other_scalar: _zeta_at_number,
}
