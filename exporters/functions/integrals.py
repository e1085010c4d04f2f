"""Integrals: the incomplete beta function, Dawson's and Fresnel's, the exponential one, the dilogarithm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from entrepot.exporters.functions.exponentials import log_of_one_more
from entrepot.exporters.functions.gamma import lgamma_of
from entrepot.exporters.functions.terms import Term, choose, in_double, polynomial

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)


def _points(x: Term, numbers: Any) -> Term:
    return Term(x.build, x.build.constant(np.asarray(numbers, np.float64)))


def _over_unit(x: Term) -> tuple[Term, Term]:
    """Places in [0, 1] and their weights."""
    return _points(x, (_NODES + 1) / 2), _points(x, _WEIGHTS / 2)


@in_double
def dawson(x: Term) -> Term:
    """exp(-x²) times the integral of exp(t²), by Gauss's points, and far out by its expansion."""
    size = x.abs().at_most(10.0).unsqueeze()
    places, weights = _over_unit(x)
    near = x.abs().at_most(10.0) * (weights * (size * size * (places * places - 1)).exp()).sum()
    inverse = 1 / x.abs().at_least(10.0)
    square = inverse * inverse
    far = inverse / 2 * polynomial((945 / 32, 105 / 16, 15 / 8, 3 / 4, 1 / 2, 1.0), square)
    value = choose(x.abs() <= 10, near, far)
    return choose(x.isnan(), math.nan, choose(x < 0, -value, value))


def _fresnel(x: Term, *, cosine: bool) -> Term:
    size = x.abs()
    inside = size.at_most(6.0)
    places, weights = _over_unit(x)
    angle = (math.pi / 2) * (inside.unsqueeze() * places) * (inside.unsqueeze() * places)
    near = inside * (weights * (angle.cos() if cosine else angle.sin())).sum()
    outside = size.at_least(6.0).at_most(1e7)
    part = 1 / (math.pi * outside * outside)
    square = part * part
    f = polynomial((-10395.0, 105.0, -3.0, 1.0), square) / (math.pi * outside)
    g = polynomial((-135135.0, 945.0, -15.0, 1.0), square) * part / (math.pi * outside)
    turn = (math.pi / 2) * outside * outside
    wave = f * turn.sin() - g * turn.cos() if cosine else -f * turn.cos() - g * turn.sin()
    value = choose(size <= 6, near, choose(size.isinf(), 0.5, 0.5 + wave))
    return choose(x.isnan(), math.nan, choose(x < 0, -value, value))


@in_double
def fresnel_cosine(x: Term) -> Term:
    """The integral of cos(pi t² / 2)."""
    return _fresnel(x, cosine=True)


@in_double
def fresnel_sine(x: Term) -> Term:
    """The integral of sin(pi t² / 2)."""
    return _fresnel(x, cosine=False)


@in_double
def exponential_integral(x: Term) -> Term:
    """Ei of positive numbers: a series of positive terms, and its expansion far out."""
    inside = choose((x > 0) & (x <= 40), x, 1.0)
    counts = np.arange(1, 140)
    logs = np.array([math.lgamma(count + 1) for count in counts])
    terms = (inside.log().unsqueeze() * _points(x, counts) - _points(x, logs)).exp() / _points(x, counts)
    near = 0.57721566490153286061 + inside.log() + terms.sum()
    outside = x.at_least(40.0)
    inverse = 1 / outside
    far = outside.exp() * inverse * polynomial([float(math.factorial(power)) for power in range(20, -1, -1)], inverse)
    value = choose(x <= 40, near, far)
    value = choose(x == 0, -math.inf, choose(x < 0, math.nan, value))
    return choose(x.isinf() & (x > 0), math.inf, choose(x.isnan(), math.nan, value))


@in_double
def dilogarithm(x: Term) -> Term:
    """The integral of -log(t) / (t - 1) from 1 on, as TensorFlow's ``spence`` has it."""
    large = x > 1.5
    inner = choose(large, 1 / choose(large, x, 1.0), x)
    small = inner < 0.5
    rest = choose(small, inner, 1 - inner)
    counts = np.arange(1, 60)
    terms = _powers(rest, 59) / _points(x, counts * counts)
    series = terms.sum()
    logs = choose((inner > 0) & (inner < 1), inner, 0.5)
    turned = math.pi**2 / 6 - choose(inner == 0, 0.0, logs.log() * log_of_one_more(-logs)) - series
    value = choose(small, turned, series)
    log = choose(large, x, 1.0).log()
    value = choose(large, -0.5 * log * log - value, value)
    return choose((x < 0) | x.isnan(), math.nan, value)


def _powers(x: Term, count: int) -> Term:
    """x, x², ... along a last axis."""
    signs = choose(x < 0, -1.0, x * 0.0 + 1.0).unsqueeze()
    odd = _points(x, np.arange(1, count + 1) % 2)
    size = x.abs().unsqueeze() ** _points(x, np.arange(1, count + 1))
    return size * choose((signs < 0) & (odd == 1), -1.0, size * 0.0 + 1.0)


@in_double
def betainc(a: Term, b: Term, x: Term) -> Term:
    """The regularised incomplete beta function, by double exponential points from the nearer end."""
    given = (a > 0) & (b > 0) & (x > 0) & (x < 1)
    a_in, b_in, x_in = (choose(given, each, filler) for each, filler in ((a, 1.0), (b, 1.0), (x, 0.5)))
    over = x_in * (a_in + b_in) > a_in
    first, second, end = choose(over, b_in, a_in), choose(over, a_in, b_in), choose(over, 1 - x_in, x_in)
    step = np.arange(-130, 131, dtype=np.float64) / 32
    spots = 1 / (1 + np.exp(-math.pi * np.sinh(step)))
    log_spots = -np.log1p(np.exp(np.minimum(-math.pi * np.sinh(step), 700.0)))
    weights = _points(x, (1 - spots) * np.cosh(step) * (math.pi / 32))
    logs = first.unsqueeze() * (end.log().unsqueeze() + _points(x, log_spots))
    logs = logs + (second.unsqueeze() - 1) * log_of_one_more(-(end.unsqueeze() * _points(x, spots)))
    whole = lgamma_of(a_in) + lgamma_of(b_in) - lgamma_of(a_in + b_in)
    value = (weights * (logs - whole.unsqueeze()).exp()).sum()
    value = choose(over, 1 - value, value)
    value = choose(x == 0, 0.0, choose(x == 1, 1.0, value))
    fits = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    return choose(fits, value, math.nan)
