"""The regularised incomplete gamma functions P and Q = 1 - P, and the incomplete beta function.

The lower gamma is a sum of positive terms and the same function at a larger parameter, where the integrand is a bell
that a few points resolve. The upper one, where it is small, is integrated by itself.

W. H. Press et al., "Numerical Recipes", third edition, 4.5 (double exponential points, which are computed and so
no constants) and 6.2 (the interval of the bell).
"""

from __future__ import annotations

import math

import numpy as np

from entrepot.exporters.functions.exponentials import log_of_one_more
from entrepot.exporters.functions.gamma import lgamma_of
from entrepot.exporters.functions.terms import Term, choose, in_double

_SHIFT = 100
"""From here on the integrand is a bell."""


@in_double
def igamma(a: Term, x: Term) -> Term:
    """P(a, x)."""
    return _with_limits(a, x, _lower(*_inside(a, x)), 1.0)


@in_double
def igammac(a: Term, x: Term) -> Term:
    """Q(a, x), exact also where it is tiny."""
    inner, at = _inside(a, x)
    lower = _lower(inner, at)
    small = choose(at < 1.1, _upper_near_zero(inner, at), _upper_far(inner.at_most(_SHIFT), at.at_least(1.1)))
    upper = choose(inner < _SHIFT, small, _upper_bell(inner.at_least(_SHIFT), at))
    return _with_limits(a, x, choose(lower < 0.9, 1 - lower, upper), 0.0)


def _inside(a: Term, x: Term) -> tuple[Term, Term]:
    """The operands, with one in place of those that have no value or a known one."""
    given = (a > 0) & (x > 0) & ~a.isinf() & ~x.isinf()
    return choose(given, a, 1.0), choose(given, x, 1.0)


def _with_limits(a: Term, x: Term, value: Term, at_infinity: float) -> Term:
    """As TensorFlow has them: P(a, 0) is 0 whatever a is."""
    value = choose(x.isinf(), at_infinity, choose(a.isinf(), 1 - at_infinity, value))
    value = choose(a.isinf() & x.isinf(), 0.0, choose(x == 0, 1 - at_infinity, value))
    none = (a <= 0) | (x < 0) | a.isnan() | x.isnan()
    return choose(none & ~(x == 0) if at_infinity else none, math.nan, value)


def _points(x: Term, numbers: np.ndarray) -> Term:
    return Term(x.build, x.build.constant(numbers.astype(np.float64)))


def _lower(a: Term, x: Term) -> Term:
    """Terms x^(a + k) exp(-x) / gamma(a + k + 1), and what is left of them as an integral."""
    steps = _points(x, np.arange(1, _SHIFT))
    logs = (x.unsqueeze() / (a.unsqueeze() + steps)).log().op("CumSum", x.build.constant(np.array(-1)))
    first = _front(a, x)
    terms = choose(first == 0, 0.0, first * (1 + logs.exp().sum()))
    bell, right = _bell(a + _SHIFT, x)
    return terms + choose(right, 1 - bell, bell)


def _upper_bell(a: Term, x: Term) -> Term:
    bell, right = _bell(a, x)
    return choose(right, bell, 1 - bell)


def _upper_near_zero(a: Term, x: Term) -> Term:
    """1 - x^a / gamma(1 + a), less a series, for x below 1.1 and small parameters."""
    rest, factor = x * 0.0, x * 0.0 + 1.0
    for step in range(1, 21):
        factor = -factor * x / step
        rest = rest + factor / (a + step)
    log = a * x.log() - lgamma_of(1 + a)
    whole = log.exp()
    near = log.abs() < 1e-2
    little = choose(near, log, 0.0)
    less = choose(near, little * (1 + little / 2 * (1 + little / 3 * (1 + little / 4 * (1 + little / 5)))), whole - 1)
    return -less - a * whole * rest


def _upper_far(a: Term, x: Term) -> Term:
    """exp(-v) (1 + v / x)^(a - 1) over all positive v, for x of one and more."""
    step = np.arange(-96, 84, dtype=np.float64) / 20
    spots = np.exp(step - np.exp(-step))
    weights = _points(x, (1 + np.exp(-step)) * spots / 20)
    points = _points(x, spots)
    logs = (a.unsqueeze() - 1) * log_of_one_more(points / x.unsqueeze()) - points
    return _front(a, x) * a / x * (weights * logs.exp()).sum()


def _front(a: Term, x: Term) -> Term:
    """x^a exp(-x) / gamma(a + 1)."""
    few = a < 100
    small, large = choose(few, a, 1.0), choose(few, 100.0, a)
    direct = (small * x.log() - x - lgamma_of(small + 1)).exp()
    return choose(few, direct, (large * _log1pmx((x - large) / large)).exp() * _stirling(large))


def _bell(a: Term, x: Term) -> tuple[Term, Term]:
    """The integral from x outwards, and whether that is to the right: x lies beyond the maximum."""
    top = a - 1
    width, offset = top.sqrt(), x - top
    beyond = (11.5 * width).at_least(offset + 6 * width)
    before = (-7.5 * width).at_most(offset - 5 * width).at_least(-top)
    span = choose(offset > 0, beyond, before) - offset
    step = np.arange(-50, 51, dtype=np.float64) / 16
    spots = 1 / (1 + np.exp(-math.pi * np.sinh(step)))
    weights = _points(x, spots * (1 - spots) * np.cosh(step) * (math.pi / 16))
    places = (offset.unsqueeze() + span.unsqueeze() * _points(x, spots)) / top.unsqueeze()
    heights = (top.unsqueeze() * _log1pmx(places)).exp()
    return span.abs() * (weights * heights).sum() * _stirling(top), offset > 0


def _stirling(a: Term) -> Term:
    """a^a exp(-a) / gamma(a + 1), for a of 20 and more."""
    inverse = 1 / (a * a)
    series = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse / 1680))) / a
    return (-series).exp() / (2 * math.pi * a).sqrt()


def _log1pmx(z: Term) -> Term:
    """log(1 + z) - z, by its series where the difference would lose all digits."""
    near = z.abs() < 0.02
    inner = choose(near, z, 0.0)
    series = z * 0.0
    for power in range(9, 1, -1):
        series = series * inner + (-1) ** (power + 1) / power
    return choose(near, series * inner * inner, (1 + z).log() - z)
