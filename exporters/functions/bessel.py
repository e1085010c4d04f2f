"""Bessel functions of the orders 0 and 1, in double precision."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from entrepot.exporters.building import Builder
from entrepot.exporters.functions import bessel_coefficients as table
from entrepot.exporters.functions.terms import Term, choose, clenshaw


def _rounded(function: Callable[..., Term], **how: Any) -> Callable[[Builder, ir.Value], ir.Value]:
    """In double precision, with the terms that the type of the result can show."""

    def called(build: Builder, value: ir.Value) -> ir.Value:
        sum_of = functools.partial(clenshaw, double=value.dtype == ir.DataType.DOUBLE)
        x = Term(build, build.cast(value, ir.DataType.DOUBLE))
        return build.cast(choose(x.isnan(), math.nan, function(x, sum_of, **how)).value, value.dtype)

    return called


def _growing(x: Term, sum_of: Any, *, order: int, scaled: bool) -> Term:
    """The modified function of the first kind."""
    value = _growing_scaled(x.abs(), order, sum_of)
    value = value if scaled else value * x.abs().exp()
    value = choose(x.isinf(), 0.0, value) if scaled else value  # else NaN, as frameworks have it
    return choose(x < 0, -value, value) if order else value


def _growing_scaled(x: Term, order: int, sum_of: Any) -> Term:
    """For x of 0 and more; what is not in its interval is computed at the bound and not taken."""
    near, far = ((table.I0_NEAR, table.I0_FAR), (table.I1_NEAR, table.I1_FAR))[order]
    inside, outside = x.at_most(8.0), x.at_least(8.0)
    left = sum_of(near, inside / 4 - 1)
    right = sum_of(far, 16 / outside - 1) / outside.sqrt()
    return choose(x <= 8, left * inside if order else left, right)


def _decaying(x: Term, sum_of: Any, *, order: int, scaled: bool) -> Term:
    """The modified function of the second kind; infinite from 0 down, as in TensorFlow."""
    inside, outside = x.at_most(2.0).at_least(0.0), x.at_least(2.0)
    near = sum_of((table.K0_NEAR, table.K1_NEAR)[order], inside * inside / 2 - 1)
    slope = (inside / 2).log() * _growing_scaled(inside, order, sum_of) * inside.exp()
    left = near / inside + slope if order else near - slope
    right = sum_of((table.K0_FAR, table.K1_FAR)[order], 4 / outside - 1) / outside.sqrt()
    value = choose(x <= 2, left * inside.exp(), right) if scaled else choose(x <= 2, left, right * (-x).exp())
    return choose(x <= 0, math.inf, value)


def _first_kind(x: Term, sum_of: Any, *, order: int) -> Term:
    """J of an order."""
    size = x.abs()
    value = choose(size <= 8, _first_near(size, order, sum_of), _far(size, order, sum_of)[0])
    return choose(x < 0, -value, value) if order else value


def _second_kind(x: Term, sum_of: Any, *, order: int) -> Term:
    """Y of an order; minus infinity from 0 down, as in TensorFlow."""
    inside = x.at_most(8.0).at_least(0.0)
    rest = sum_of((table.Y0_NEAR, table.Y1_NEAR)[order], inside * inside / 32 - 1)
    shape = _first_near(inside, order, sum_of) * inside.log()
    left = 2 / math.pi * (shape - 1 / inside) + inside * rest if order else 2 / math.pi * shape + rest
    value = choose(x <= 8, left, _far(x, order, sum_of)[1])
    return choose(x <= 0, -math.inf, value)


def _first_near(x: Term, order: int, sum_of: Any) -> Term:
    inside = x.at_most(8.0)
    value: Term = sum_of((table.J0_NEAR, table.J1_NEAR)[order], inside * inside / 32 - 1)
    return value * inside if order else value


def _far(x: Term, order: int, sum_of: Any) -> tuple[Term, Term]:
    """J and Y beyond 8: waves that decay."""
    outside = x.at_least(8.0)
    place = 8 / outside
    p = sum_of((table.P0, table.P1)[order], 2 * place * place - 1)
    q = sum_of((table.Q0, table.Q1)[order], 2 * place * place - 1) * place
    phase = outside - (math.pi / 4 + order * math.pi / 2)
    size = (2 / (math.pi * outside)).sqrt()
    return size * (p * phase.cos() - q * phase.sin()), size * (p * phase.sin() + q * phase.cos())


FUNCTIONS: dict[str, Callable[[Builder, ir.Value], ir.Value]] = {
    **{f"I{order}": _rounded(_growing, order=order, scaled=False) for order in (0, 1)},
    **{f"I{order}e": _rounded(_growing, order=order, scaled=True) for order in (0, 1)},
    **{f"K{order}": _rounded(_decaying, order=order, scaled=False) for order in (0, 1)},
    **{f"K{order}e": _rounded(_decaying, order=order, scaled=True) for order in (0, 1)},
    **{f"J{order}": _rounded(_first_kind, order=order) for order in (0, 1)},
    **{f"Y{order}": _rounded(_second_kind, order=order) for order in (0, 1)},
}
"""By name: ``I0``, ``I0e`` and so on; ``e`` is scaled by the exponential function."""
