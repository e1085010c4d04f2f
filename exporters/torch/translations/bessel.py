"""Bessel functions of the orders 0 and 1, in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from entrepot.exporters.functions import bessel_coefficients as table
from entrepot.exporters.torch.translations.precision import clenshaw

aten = torch.ops.aten


def _rounded(function: Callable[..., torch.Tensor], **how: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    """In double precision, with the terms that the type of the result can show."""

    def decomposition(input: torch.Tensor) -> torch.Tensor:
        kind = input.dtype if input.is_floating_point() else torch.get_default_dtype()
        x = input.to(torch.float64)
        return torch.where(x.isnan(), torch.nan, function(x, kind, **how)).to(kind)

    return decomposition


def _growing(x: torch.Tensor, kind: torch.dtype, *, order: int, scaled: bool) -> torch.Tensor:
    """The modified function of the first kind."""
    value = _growing_scaled(x.abs(), order, kind)
    value = value if scaled else value * x.abs().exp()  # NaN at infinity, as torch says
    return torch.where(x < 0, -value, value) if order else value


def _growing_scaled(x: torch.Tensor, order: int, kind: torch.dtype) -> torch.Tensor:
    """For x of 0 and more; what is not in its interval is computed at the bound and not taken."""
    near, far = ((table.I0_NEAR, table.I0_FAR), (table.I1_NEAR, table.I1_FAR))[order]
    inside, outside = x.clamp(max=8), x.clamp(min=8)
    left = clenshaw(near, inside / 4 - 1, kind)
    right = clenshaw(far, 16 / outside - 1, kind) / outside.sqrt()
    return torch.where(x <= 8, left * inside if order else left, right)


def _decaying(x: torch.Tensor, kind: torch.dtype, *, order: int, scaled: bool) -> torch.Tensor:
    """The modified function of the second kind; infinite at 0, and no number below."""
    inside, outside = x.clamp(0, 2), x.clamp(min=2)
    near = clenshaw((table.K0_NEAR, table.K1_NEAR)[order], inside * inside / 2 - 1, kind)
    slope = (inside / 2).log() * _growing_scaled(inside, order, kind) * inside.exp()
    left = near / inside + slope if order else near - slope
    right = clenshaw((table.K0_FAR, table.K1_FAR)[order], 4 / outside - 1, kind) / outside.sqrt()
    value = torch.where(x <= 2, left * inside.exp(), right) if scaled else torch.where(x <= 2, left, right * (-x).exp())
    return torch.where(x == 0, torch.inf, torch.where(x < 0, torch.nan, value))


def _first_kind(x: torch.Tensor, kind: torch.dtype, *, order: int) -> torch.Tensor:
    """J of an order."""
    size = x.abs()
    value = torch.where(size <= 8, _first_near(size, order, kind), _far(size, order, kind)[0])
    return torch.where(x < 0, -value, value) if order else value


def _second_kind(x: torch.Tensor, kind: torch.dtype, *, order: int) -> torch.Tensor:
    """Y of an order; minus infinity at 0, and no number below."""
    inside = x.clamp(0, 8)
    rest = clenshaw((table.Y0_NEAR, table.Y1_NEAR)[order], inside * inside / 32 - 1, kind)
    shape = _first_near(inside, order, kind) * inside.log()
    left = 2 / math.pi * (shape - 1 / inside) + inside * rest if order else 2 / math.pi * shape + rest
    value = torch.where(x <= 8, left, _far(x, order, kind)[1])
    return torch.where(x == 0, -torch.inf, torch.where(x < 0, torch.nan, value))


def _first_near(x: torch.Tensor, order: int, kind: torch.dtype) -> torch.Tensor:
    inside = x.clamp(max=8)
    value = clenshaw((table.J0_NEAR, table.J1_NEAR)[order], inside * inside / 32 - 1, kind)
    return value * inside if order else value


def _far(x: torch.Tensor, order: int, kind: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """J and Y beyond 8: waves that decay."""
    outside = x.clamp(min=8)
    place = 8 / outside
    p = clenshaw((table.P0, table.P1)[order], 2 * place * place - 1, kind)
    q = clenshaw((table.Q0, table.Q1)[order], 2 * place * place - 1, kind) * place
    phase = outside - (math.pi / 4 + order * math.pi / 2)
    size = (2 / (math.pi * outside)).sqrt()
    return size * (p * phase.cos() - q * phase.sin()), size * (p * phase.sin() + q * phase.cos())


def spherical_bessel_j0(input: torch.Tensor) -> torch.Tensor:
    """sin(x) / x."""
    kind = input.dtype if input.is_floating_point() else torch.get_default_dtype()
    x = input.to(kind)
    ratio = x.sin() / torch.where(x == 0, 1.0, x)
    return torch.where(x == 0, 1.0, torch.where(x.isinf(), 0.0, ratio))


_I0, _I1 = (_rounded(_growing, order=order, scaled=False) for order in (0, 1))

DECOMPOSITIONS = {
    aten.i0.default: _I0,
    aten.special_i0.default: _I0,
    aten.special_modified_bessel_i0.default: _I0,
    aten.special_i1.default: _I1,
    aten.special_modified_bessel_i1.default: _I1,
    aten.special_i0e.default: _rounded(_growing, order=0, scaled=True),
    aten.special_i1e.default: _rounded(_growing, order=1, scaled=True),
    aten.special_modified_bessel_k0.default: _rounded(_decaying, order=0, scaled=False),
    aten.special_modified_bessel_k1.default: _rounded(_decaying, order=1, scaled=False),
    aten.special_scaled_modified_bessel_k0.default: _rounded(_decaying, order=0, scaled=True),
    aten.special_scaled_modified_bessel_k1.default: _rounded(_decaying, order=1, scaled=True),
    aten.special_bessel_j0.default: _rounded(_first_kind, order=0),
    aten.special_bessel_j1.default: _rounded(_first_kind, order=1),
    aten.special_bessel_y0.default: _rounded(_second_kind, order=0),
    aten.special_bessel_y1.default: _rounded(_second_kind, order=1),
    aten.special_spherical_bessel_j0.default: spherical_bessel_j0,
}
