"""The regularised incomplete gamma functions P and Q = 1 - P.

The lower one is a sum of positive terms and the same function at a larger parameter, where the integrand is a bell
that a few points resolve. The upper one, where it is small, is integrated by itself.

W. H. Press et al., "Numerical Recipes", third edition, 4.5 (double exponential points, which are computed and so
no constants) and 6.2 (the interval of the bell).
"""

from __future__ import annotations

import math

import torch

from entrepot.exporters.torch.translations.gamma import lgamma
from entrepot.exporters.torch.translations.precision import in_double

aten = torch.ops.aten

_SHIFT = 100
"""From here on the integrand is a bell."""


@in_double
def igamma(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """P(a, x)."""
    return _with_limits(a, x, _lower(*_inside(a, x)), 1.0)


@in_double
def igammac(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Q(a, x), exact also where it is tiny."""
    inner, at = _inside(a, x)
    lower = _lower(inner, at)
    small = torch.where(at < 1.1, _upper_near_zero(inner, at), _upper_far(inner.clamp(max=_SHIFT), at.clamp(min=1.1)))
    upper = torch.where(inner < _SHIFT, small, _upper_bell(inner.clamp(min=_SHIFT), at))
    return _with_limits(a, x, torch.where(lower < 0.9, 1 - lower, upper), 0.0)


def _inside(a: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The operands, with one in place of those that have no value or a known one."""
    given = (a > 0) & (x > 0) & a.isfinite() & x.isfinite()
    return torch.where(given, a, 1.0), torch.where(given, x, 1.0)


def _with_limits(a: torch.Tensor, x: torch.Tensor, value: torch.Tensor, at_infinity: float) -> torch.Tensor:
    """Limits come before NaN, as in torch."""
    value = torch.where(a.isnan() | x.isnan(), torch.nan, value)
    value = torch.where(x.isinf() | ((a == 0) & (x > 0)), at_infinity, value)
    value = torch.where((a.isinf() & ~x.isinf()) | ((x == 0) & (a != 0)), 1 - at_infinity, value)
    neither = (a < 0) | (x < 0) | ((a == 0) & (x == 0)) | (a.isinf() & x.isinf())
    return torch.where(neither, torch.nan, value)


def _lower(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Terms x^(a + k) exp(-x) / gamma(a + k + 1), and what is left of them as an integral."""
    steps = torch.arange(1, _SHIFT, dtype=torch.float64)
    logs = (x.unsqueeze(-1) / (a.unsqueeze(-1) + steps)).log().cumsum(-1)
    first = _front(a, x)
    terms = torch.where(first == 0, 0.0, first * (1 + logs.exp().sum(-1)))
    bell, right = _bell(a + _SHIFT, x)
    return terms + torch.where(right, 1 - bell, bell)


def _upper_bell(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    bell, right = _bell(a, x)
    return torch.where(right, bell, 1 - bell)


def _upper_near_zero(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """1 - x^a / gamma(1 + a), less a series, for x below 1.1 and small parameters."""
    rest, factor = torch.zeros_like(x), torch.ones_like(x)
    for step in range(1, 21):
        factor = -factor * x / step
        rest = rest + factor / (a + step)
    log = a * x.log() - lgamma(1 + a)
    return -torch.expm1(log) - a * log.exp() * rest


def _upper_far(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """exp(-v) (1 + v / x)^(a - 1) over all positive v, for x of one and more."""
    step = torch.arange(-96, 84, dtype=torch.float64) / 20
    points = (step - (-step).exp()).exp()
    weights = (1 + (-step).exp()) * points / 20
    logs = (a.unsqueeze(-1) - 1) * torch.log1p(points / x.unsqueeze(-1)) - points
    return _front(a, x) * a / x * (weights * logs.exp()).sum(-1)


def _front(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """x^a exp(-x) / gamma(a + 1)."""
    few = a < 100
    small, large = torch.where(few, a, 1.0), torch.where(few, 100.0, a)
    direct = (small * x.log() - x - lgamma(small + 1)).exp()
    return torch.where(few, direct, (large * _log1pmx((x - large) / large)).exp() * _stirling(large))


def _bell(a: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The integral from x outwards, and whether that is to the right: x lies beyond the maximum."""
    top = a - 1
    width, offset = top.sqrt(), x - top
    beyond = torch.maximum(11.5 * width, offset + 6 * width)
    before = torch.minimum(-7.5 * width, offset - 5 * width).maximum(-top)
    span = torch.where(offset > 0, beyond, before) - offset
    step = torch.arange(-50, 51, dtype=torch.float64) / 16
    points = 1 / (1 + (-math.pi * step.sinh()).exp())
    weights = points * (1 - points) * step.cosh() * (math.pi / 16)
    places = (offset.unsqueeze(-1) + span.unsqueeze(-1) * points) / top.unsqueeze(-1)
    heights = (top.unsqueeze(-1) * _log1pmx(places)).exp()
    return span.abs() * (weights * heights).sum(-1) * _stirling(top), offset > 0


def _stirling(a: torch.Tensor) -> torch.Tensor:
    """a^a exp(-a) / gamma(a + 1), for a of 20 and more."""
    inverse = 1 / (a * a)
    series = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse / 1680))) / a
    return (-series).exp() / (2 * math.pi * a).sqrt()


def _log1pmx(z: torch.Tensor) -> torch.Tensor:
    """log(1 + z) - z, by its series where the difference would lose all digits."""
    near = z.abs() < 0.02
    inner = torch.where(near, z, 0.0)
    series = torch.zeros_like(z)
    for power in range(9, 1, -1):
        series = series * inner + (-1) ** (power + 1) / power
    return torch.where(near, series * inner * inner, (1 + z).log() - z)


DECOMPOSITIONS = {aten.igamma.default: igamma, aten.igammac.default: igammac}
