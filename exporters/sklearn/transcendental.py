"""Functions that ONNX lacks, or that runtimes have in single precision only, made of those that they all have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_PI = np.pi


def _log1p(x: Any) -> Any:
    """log(1 + x), with what 1 + x loses put back."""
    u = 1.0 + x
    lost = u - 1.0
    safe = np.where((lost == 0) | (np.abs(u) == np.inf), 1.0, lost)
    return np.where(lost == 0, x, np.where(np.abs(u) == np.inf, u, np.log(u) * (x / safe)))


def _expm1(x: Any) -> Any:
    """exp(x) - 1; near 0 by tanh, which loses nothing there."""
    half = np.tanh(np.clip(x, -1.0, 1.0) * 0.5)
    return np.where(np.abs(x) < 1.0, 2.0 * half / (1.0 - half), np.exp(x) - 1.0)


def _log_expit(x: Any) -> Any:
    return np.minimum(x, 0.0) - _log1p(np.exp(-np.abs(x)))


def _logaddexp(x: Any, y: Any) -> Any:
    return np.maximum(x, y) + _log1p(np.exp(-np.where(x == y, 0.0, np.abs(x - y))))


def _is_negative(x: Any) -> Any:
    """Whether the sign is set, that of a zero as well."""
    return (x < 0) | ((x == 0) & (1.0 / x < 0))


def _arctan2(y: Any, x: Any) -> Any:
    both = np.isinf(x) & np.isinf(y)
    ratio = np.abs(np.where(both, np.sign(y), y)) / np.abs(np.where(both, np.sign(x), x))
    angle = np.where(
        y == 0, 0.0, np.where(x == 0, 0.5 * _PI, _arctan(np.where(np.isnan(ratio) & (y == 0), 0.0, ratio)))
    )
    angle = np.where(_is_negative(x), _PI - angle, angle)
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(_is_negative(y), -angle, angle))


def _hypot(x: Any, y: Any) -> Any:
    """Of numbers whose squares are too large, or too small, by their ratio to the larger."""
    most, least = np.maximum(np.abs(x), np.abs(y)), np.minimum(np.abs(x), np.abs(y))
    ratio = least / np.where((most == 0) | np.isinf(most), 1.0, most)
    found = most * np.sqrt(1.0 + np.where(np.isinf(most), 0.0, ratio * ratio))
    return np.where(np.isinf(x) | np.isinf(y), np.inf, np.where(np.isnan(x) | np.isnan(y), np.nan, found))


def _fmax(x: Any, y: Any) -> Any:
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, np.maximum(x, y)))


def _sinh(x: Any) -> Any:
    size = np.abs(x)
    grown = _expm1(size)
    return np.sign(x) * 0.5 * (grown + np.where(size > 40.0, 1.0, grown / (grown + 1.0)))


def _cosh(x: Any) -> Any:
    return 0.5 * (np.exp(x) + np.exp(-x))


def _arcsinh(x: Any) -> Any:
    size = np.abs(x)
    less = np.minimum(size, 1e9)
    near = _log1p(less + less * less / (1.0 + np.sqrt(less * less + 1.0)))
    return np.sign(x) * np.where(size > 1e9, np.log(size) + np.log(2.0), near)


def _arctan(x: Any) -> Any:
    """Halved three times, then its series: what is left is below 0.2; beyond 1e100 it is a right angle, rounded."""
    x = np.clip(x, -1e100, 1e100)
    for _ in range(3):
        x = x / (1.0 + np.sqrt(1.0 + x * x))
    square, total = x * x, 0.0
    for n in range(27, 0, -2):
        total = total * square + (-1) ** (n // 2) / n
    return 8.0 * x * total


def _arcsin(x: Any) -> Any:
    return 2.0 * _arctan(x / (1.0 + np.sqrt(1.0 - x * x)))


def _both(size: Any) -> tuple[Any, Any]:
    """Erf and 1 - erf of what is not negative: a series where it is small, a continued fraction where it is large.

    Abramowitz and Stegun, 7.1.6 and 7.1.14; onnxruntime's Erf is in single precision.
    """
    small, large = np.minimum(size, 3.0), np.maximum(size, 3.0)
    square, total = small * small, 1.0
    for n in range(60, 0, -1):
        total = 1.0 + total * (2.0 * square / (2 * n + 1))
    near = 2.0 / np.sqrt(_PI) * small * np.exp(-square) * total
    fraction = large
    for n in range(60, 0, -1):
        fraction = large + (n / 2) / fraction
    rest = np.exp(-large * large) / (np.sqrt(_PI) * fraction)
    return np.where(size < 3.0, near, 1.0 - rest), np.where(size < 3.0, 1.0 - near, rest)


def _erf(x: Any) -> Any:
    return np.sign(x) * _both(np.abs(x))[0]


def _ndtr(x: Any) -> Any:
    tail = 0.5 * _both(np.abs(x) * np.sqrt(0.5))[1]
    return np.where(x < 0, tail, 1.0 - tail)


def _ndtri(p: Any) -> Any:
    """From Abramowitz and Stegun, 26.2.23, by Halley's steps in the lower half."""
    q = np.minimum(p, 1.0 - p)
    t = np.sqrt(-2.0 * np.log(q))
    x = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t
    for _ in range(3):
        step = (_ndtr(x) / q - 1.0) * q * np.exp(0.5 * x * x) * np.sqrt(2 * _PI)
        x = x - step / (1.0 + 0.5 * x * step)
    found = np.where(p < 0.5, x, -x)
    return np.where(p <= 0, -np.inf, np.where(p >= 1, np.inf, found))


COMPOSED: dict[str, Callable[..., Any]] = {
    "log1p": _log1p,
    "expm1": _expm1,
    "log2": lambda x: np.log(x) / np.log(2.0),
    "log10": lambda x: np.log(x) / np.log(10.0),
    "exp2": lambda x: np.exp(x * np.log(2.0)),
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1.0 / x,
    "cbrt": lambda x: np.sign(x) * np.abs(x) ** (1 / 3),
    "log_expit": _log_expit,
    "logit": lambda x: np.log(x / (1.0 - x)),
    "logaddexp": _logaddexp,
    "xlogy": lambda x, y: np.where(x == 0, 0.0, x * np.log(np.where(x == 0, 1.0, y))),
    "tan": lambda x: np.sin(x) / np.cos(x),
    "sinh": _sinh,
    "cosh": _cosh,
    "arcsinh": _arcsinh,
    "arccosh": lambda x: np.where(x > 1e9, np.log(x) + np.log(2.0), np.log(x + np.sqrt(x * x - 1.0))),
    "arctanh": lambda x: 0.5 * (_log1p(x) - _log1p(-x)),
    "arctan": _arctan,
    "arcsin": _arcsin,
    "arccos": lambda x: 0.5 * _PI - _arcsin(x),
    "erf": _erf,
    "ndtr": _ndtr,
    "_norm_cdf": _ndtr,
    "ndtri": _ndtri,
    "deg2rad": lambda x: x * (_PI / 180),
    "rad2deg": lambda x: x * (180 / _PI),
    "radians": lambda x: x * (_PI / 180),
    "degrees": lambda x: x * (180 / _PI),
    "hypot": _hypot,
    "arctan2": _arctan2,
    "signbit": _is_negative,
    "copysign": lambda x, y: np.where(_is_negative(y), -np.abs(x), np.abs(x)),
    "heaviside": lambda x, y: np.where(np.isnan(x), x, np.where(x == 0, y, (x > 0) * 1.0)),
    "fmax": _fmax,
    "fmin": lambda x, y: -_fmax(-x, -y),
    "trunc": lambda x: np.sign(x) * np.floor(np.abs(x)),
}
"""By the name of NumPy's or SciPy's function."""
