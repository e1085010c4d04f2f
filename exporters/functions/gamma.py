"""The gamma function's logarithm, its derivatives, and Hurwitz's zeta function."""

from __future__ import annotations

import math

from entrepot.exporters.functions.series import BERNOULLI, LANCZOS
from entrepot.exporters.functions.terms import Term, choose, in_double


@in_double
def lgamma(x: Term) -> Term:
    """Log |gamma(x)|."""
    return lgamma_of(x)


def lgamma_of(x: Term) -> Term:
    """Of a term in float64; below one half by reflection, near its zeros by Taylor's series."""
    left = x < 0.5
    z = choose(left, 1 - x, x) - 1
    series = x.full(0.99999999999980993)
    for place, number in enumerate(LANCZOS, 1):
        series = series + number / (z + place)
    shifted = z + 7.5
    value = (z + 0.5) * (shifted.log() - 1) + (series.log() + (0.5 * math.log(2 * math.pi) - 7))
    value = choose(z.abs() < 0.05, _near(z.at_most(1.0)), value)
    value = choose((z - 1).abs() < 0.05, _near((z - 1).at_most(1.0).at_least(-0.5)) + _log_near_one(z), value)
    turned = (math.pi / (math.pi * (x - x.round())).sin().abs()).log() - value
    return choose(x.isinf(), math.inf, choose(left, turned, value))


def _near(z: Term) -> Term:
    """Log gamma(1 + z) about 0."""
    value = z * 0.0
    for power in range(14, 1, -1):
        value = (value + (-1) ** power * _zeta(power) / power) * z
    return (value - 0.57721566490153286061) * z


def _log_near_one(z: Term) -> Term:
    """log(z) about 1."""
    part = (z - 1) / (z + 1)
    square = part * part
    value = square * 0.0
    for odd in range(15, 0, -2):
        value = value * square + 1 / odd
    return 2 * part * value


def _zeta(power: int) -> float:
    return sum(number**-power for number in range(1, 60)) + 59.5 ** (1 - power) / (power - 1)


@in_double
def digamma(x: Term) -> Term:
    """The derivative of log gamma."""
    return digamma_of(x)


def digamma_of(x: Term) -> Term:
    """Of a term, by its expansion far from 0, and by recurrence and reflection near it."""
    left = x < 0.5
    z = choose(left, 1 - x, x)
    value = z * 0.0
    for step in range(10):
        value = value - 1 / (z + step)
    z = z + 10
    inverse = 1 / (z * z)
    value = value + z.log() - 0.5 / z
    value = value - inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse / 132))))
    value = choose(x.isinf() & (x > 0), math.inf, value)
    return choose(left & (x == x.floor()), math.nan, choose(left, value - math.pi * _cotangent(x), value))


def _cotangent(x: Term) -> Term:
    """cot(pi x), from the fractional part of x."""
    turn = math.pi * (x - x.round())
    return turn.cos() / turn.sin()


@in_double
def zeta(power: Term, x: Term) -> Term:
    """The sum of 1 / (x + k)^power over all k."""
    return zeta_of(power, x)


def zeta_of(power: Term, x: Term) -> Term:
    """Of terms; for x below 0 only whole powers have a sum: from the fractional part on, and a finite one before."""
    left = x < 0
    part = choose(left, -x - (-x).floor(), 0.5)
    part = choose(part == 0, 0.5, part)
    before = zeta_right(power, part) - zeta_right(power, choose(left, 1 - x, 1.0))
    odd = ~(power / 2 == (power / 2).floor())
    value = zeta_right(power, choose(left, 1 - part, choose(x == 0, 1.0, x)))
    value = value + choose(left, choose(odd, -before, before), 0.0)
    value = choose(left & ~(power == power.floor()), math.nan, value)
    value = choose(x.isinf(), 0.0, choose(power.isinf(), choose(x > 1, 0.0, choose(x < 1, math.inf, x)), value))
    pole = (x <= 0) & (x == x.floor())
    value = choose(pole, choose(odd, math.nan, power.full(math.inf)), value)
    value = choose(power.isnan() | x.isnan() | (power < 1), math.nan, value)
    return choose(power == 1, math.inf, value)


def zeta_right(power: Term, x: Term) -> Term:
    """For positive x and powers above one, by the Euler-Maclaurin formula."""
    value = x * 0.0
    for step in range(10):
        value = value + (x + step) ** -power
    far = x + 10
    last = far**-power
    rest = last * far / (power - 1) + last / 2
    factor = last * power / far
    for index, number in enumerate(BERNOULLI, 1):
        rest = rest + number / math.factorial(2 * index) * factor
        factor = factor * (power + (2 * index - 1)) * (power + 2 * index) / (far * far)
    return choose(last > 1e-20 * value, value + rest, value)


@in_double
def polygamma(order: Term, x: Term) -> Term:
    """The derivatives of digamma by Hurwitz's zeta function, and digamma itself."""
    above = order.at_least(1.0)
    sign = choose((above / 2).floor() * 2 == above, -1.0, above.full(1.0))
    value = sign * lgamma_of(above + 1).exp() * zeta_of(above + 1, x)
    whole = (order >= 0) & (order == order.floor())
    return choose(whole, choose(order == 0, digamma_of(x), value), math.nan)
