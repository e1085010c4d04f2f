"""The error function's complement and the normal distribution, exact in their tails."""

from __future__ import annotations

import math

import torch

from entrepot.exporters.functions.series import SCALED_COMPLEMENT
from entrepot.exporters.torch.translations.precision import clenshaw, in_double

aten = torch.ops.aten


def erfc(input: torch.Tensor) -> torch.Tensor:
    """1 - erf(x)."""
    return _rounded(_erfc, input)


def erfcx(input: torch.Tensor) -> torch.Tensor:
    """exp(x²) erfc(x)."""
    return _rounded(_erfcx, input)


def ndtr(input: torch.Tensor) -> torch.Tensor:
    """The share of a normal distribution below ``x``: as in torch without the digits of the left tail."""
    kind = input.dtype if input.is_floating_point() else torch.get_default_dtype()
    return (1 + (input.to(kind) * math.sqrt(0.5)).erf()) / 2


def log_ndtr(input: torch.Tensor) -> torch.Tensor:
    """Its logarithm."""
    return _rounded(_log_ndtr, input)


@in_double
def ndtri(input: torch.Tensor) -> torch.Tensor:
    """Its inverse, by Newton's method on the logarithm from a first guess of three digits.

    M. Abramowitz, I. A. Stegun, "Handbook of Mathematical Functions", 26.2.22.
    """
    tail = torch.minimum(input, 1 - input)
    log = tail.clamp(min=torch.finfo(torch.float64).tiny).log()
    root = (-2 * log).sqrt()
    x = (2.30753 + 0.27061 * root) / (1 + 0.99229 * root + 0.04481 * root * root) - root
    for _ in range(3):
        found = _log_ndtr(x, torch.float64)
        x = x - (found - log) * (found + x * x / 2 + math.log(2 * math.pi) / 2).exp()
    x = torch.where(input < 0.5, x, torch.where(input == 0.5, 0.0, -x))
    x = torch.where(tail == 0, torch.where(input == 0, -torch.inf, torch.inf), x)
    return torch.where(tail >= 0, x, torch.nan)


def _rounded(function: object, input: torch.Tensor) -> torch.Tensor:
    """In double precision, with as many terms as the type of the result can resolve."""
    kind = input.dtype if input.is_floating_point() else torch.get_default_dtype()
    return function(input.to(torch.float64), kind).to(kind)  # type: ignore[operator]


def _erfcx_right(x: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """For x of 0 or more."""
    place = torch.where(x.isinf(), 1.0, (x - 4) / (x + 4))
    return clenshaw(SCALED_COMPLEMENT, place, kind) / (1 + 2 * x)


def _erfcx(x: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    right = _erfcx_right(x.abs(), kind)
    return torch.where(x < 0, 2 * (x * x).exp() - right, right)


def _erfc(x: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    right = _erfcx_right(x.abs(), kind) * (-x * x).exp()
    return torch.where(x < 0, 2 - right, right)


def _log_ndtr(x: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    size = x.abs() / math.sqrt(2)
    scaled = _erfcx_right(size, kind) / 2
    beyond = scaled * (-size * size).exp()  # the share on the far side of x
    # log(1 - t), by its series where t is so small that 1 - t loses it
    near = torch.where(beyond < 1e-5, -beyond * (1 + beyond / 2), (1 - beyond).log())
    return torch.where(x < 0, scaled.log() - size * size, near)


DECOMPOSITIONS = {
    aten.erfc.default: erfc,
    aten.special_erfc.default: erfc,
    aten.special_erfcx.default: erfcx,
    aten.special_ndtr.default: ndtr,
    aten.special_log_ndtr.default: log_ndtr,
    aten.special_ndtri.default: ndtri,
}
