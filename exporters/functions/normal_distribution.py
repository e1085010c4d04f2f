"""The error function, its complement and inverse, and the normal distribution, exact in their tails."""

from __future__ import annotations

import math
import sys

import onnx_ir as ir

from entrepot.exporters.building import Builder
from entrepot.exporters.functions.series import SCALED_COMPLEMENT
from entrepot.exporters.functions.terms import Term, choose, clenshaw, in_double, polynomial


def erf(build: Builder, x: ir.Value) -> ir.Value:
    """ONNX's operator; in float64, which onnxruntime (1.31) lacks it for, by its series and its complement."""
    if x.dtype == ir.DataType.DOUBLE:
        return _erf_of_doubles(build, x)
    if x.dtype == ir.DataType.BFLOAT16:
        return build.cast(build.op("Erf", build.cast(x, ir.DataType.FLOAT)), x.dtype)
    result: ir.Value = build.op("Erf", x)
    return result


@in_double
def _erf_of_doubles(x: Term) -> Term:
    return erf_of(x)


@in_double
def erfc(x: Term) -> Term:
    """1 - erf(x)."""
    return erfc_of(x)


@in_double
def erfinv(x: Term) -> Term:
    """The number whose error function is x."""
    tail = (1 - x.abs()) / 2
    y = _quantile(choose(tail > 0, tail, 0.25)) * -math.sqrt(0.5)
    near = x.abs() < 0.5
    inside = choose(near, x, 0.25)
    first = (
        inside
        * (math.sqrt(math.pi) / 2)
        * polynomial([127 * math.pi**3 / 40320, 7 * math.pi**2 / 480, math.pi / 12, 1.0], inside * inside)
    )
    for _ in range(3):
        first = first - (erf_of(first) - inside) * (math.sqrt(math.pi) / 2) * (first * first).exp()
    y = choose(near, first, choose(x < 0, -y, y))
    y = choose(x.abs() == 1, x * math.inf, y)
    return choose(x.abs() <= 1, y, math.nan)


@in_double
def ndtri(share: Term) -> Term:
    """The number that a share of a normal distribution lies below."""
    tail = share.at_most(1 - share)
    x = _quantile(choose(tail > 0, tail, 0.25))
    middle = (share - 0.5).abs() < 1e-9
    x = choose(share < 0.5, x, -x)
    x = choose(middle, (share - 0.5) * math.sqrt(2 * math.pi), x)
    x = choose(share == 0, -math.inf, choose(share == 1, math.inf, x))
    return choose((share >= 0) & (share <= 1), x, math.nan)


def _quantile(tail: Term) -> Term:
    """For shares up to one half, by Newton's method on the logarithm from a first guess of three digits.

    M. Abramowitz, I. A. Stegun, "Handbook of Mathematical Functions", 26.2.22.
    """
    log = tail.at_least(sys.float_info.min).log()
    root = (-2 * log).sqrt()
    x = (2.30753 + 0.27061 * root) / (1 + 0.99229 * root + 0.04481 * root * root) - root
    for _ in range(3):
        found = _log_share(x)
        x = x - (found - log) * (found + x * x / 2 + math.log(2 * math.pi) / 2).exp()
    return x


def erf_of(x: Term) -> Term:
    """Of a term in float64: a series near 0, and one less the complement further out."""
    square = x * x
    near = x.abs() < 0.5
    numbers = [(-1) ** at / (math.factorial(at) * (2 * at + 1)) for at in range(12, -1, -1)]
    series = choose(near, x, 0.0) * (2 / math.sqrt(math.pi)) * polynomial(numbers, choose(near, square, 0.0))
    far = 1 - erfc_of(x.abs())
    return choose(near, series, choose(x < 0, -far, far))


def erfc_of(x: Term) -> Term:
    """Of a term in float64."""
    right = _scaled(x.abs()) * (-x * x).exp()
    right = choose(x.isinf(), 0.0, right)
    return choose(x < 0, 2 - right, right)


def _scaled(x: Term) -> Term:
    """exp(x²) erfc(x) for x of 0 or more."""
    place = choose(x.isinf(), 1.0, (x - 4) / (x + 4))
    return clenshaw(SCALED_COMPLEMENT, place) / (1 + 2 * x)


def _log_share(x: Term) -> Term:
    """The logarithm of the share below x, for x up to 0."""
    size = x.abs() * math.sqrt(0.5)
    scaled = _scaled(size) / 2
    beyond = scaled * (-size * size).exp()
    return choose(x < 0, scaled.log() - size * size, (1 - beyond).log())
