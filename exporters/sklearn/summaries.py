"""NumPy's functions that sum up along an axis, pass over what is missing, and look numbers up between others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Array, Symbolic, lifted
from entrepot.exporters.sklearn.rearranging import known_size
from entrepot.ir.errors import ConversionError


def _missing(x: Symbolic) -> Symbolic:
    return np.isnan(x) if x.dtype.kind == "f" else np.zeros_like(x, dtype=bool)


def _known(x: Symbolic, axis: Any, *, keepdims: bool = False) -> Symbolic:
    return np.sum((~_missing(x)).astype(np.int64), axis=axis, keepdims=keepdims)


def _nan_sum(x: Symbolic, axis: Any = None, keepdims: bool = False, **_: Any) -> Symbolic:
    return np.sum(np.where(_missing(x), 0, x), axis=axis, keepdims=keepdims)


def _nan_mean(x: Symbolic, axis: Any = None, keepdims: bool = False, **_: Any) -> Symbolic:
    return _nan_sum(x, axis, keepdims) / _known(x, axis, keepdims=keepdims)


def _nan_var(x: Symbolic, axis: Any = None, ddof: int = 0, keepdims: bool = False, **_: Any) -> Symbolic:
    apart = np.where(_missing(x), 0.0, x - _nan_mean(x, axis, keepdims=True))
    left = _known(x, axis, keepdims=keepdims) - ddof
    return np.where(left > 0, np.sum(apart * apart, axis=axis, keepdims=keepdims) / left, np.nan)


def _nan_max(x: Symbolic, axis: Any = None, keepdims: bool = False, **_: Any) -> Symbolic:
    if x.dtype.kind != "f":
        return np.max(x, axis=axis, keepdims=keepdims)
    most = np.max(np.where(_missing(x), -np.inf, x), axis=axis, keepdims=keepdims)
    return np.where(_known(x, axis, keepdims=keepdims) > 0, most, np.nan)


def _nan_min(x: Symbolic, axis: Any = None, keepdims: bool = False, **_: Any) -> Symbolic:
    return -_nan_max(-x, axis, keepdims)


def variance(x: Symbolic, axis: Any = None, ddof: int = 0, keepdims: Any = False, **_: Any) -> Symbolic:
    """The mean square of what is left without the mean; of a sample, if degrees of freedom are taken away."""
    apart = x - np.mean(x, axis=axis, keepdims=True)
    square, keeps = apart * apart, keepdims is True
    if not ddof:
        return np.mean(square, axis=axis, keepdims=keeps)
    count = np.sum(np.ones_like(x, dtype=np.int64), axis=axis, keepdims=keeps) - ddof
    return np.where(count > 0, np.sum(square, axis=axis, keepdims=keeps) / count, np.nan)


def quantile(x: Symbolic, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False, **_: Any) -> Any:
    """Between the two elements of a row that are nearest in order; not a number where one is none."""
    if axis is None or method != "linear":
        raise ConversionError("quantiles but by method='linear' of rows cannot be written into a graph", hint="axis=1")
    axis %= x.ndim
    x = x if x.dtype.kind == "f" else x.astype(np.float64)
    lost, last = _missing(x), known_size(x, axis) - 1
    ordered = np.sort(np.where(lost, 0.0, x), axis=axis)
    lost = lost.any(axis)

    def one(share: float) -> Symbolic:
        low = int(np.floor(share * last))
        below, above = (ordered.take(np.int64(min(at, last)), axis) for at in (low, low + 1))
        part = share * last - low
        found = below + (above - below) * part if part < 0.5 else above - (above - below) * (1 - part)
        whole: Symbolic = np.where(lost, np.nan, found)
        return whole.expand(axis) if keepdims else whole

    return one(float(q)) if np.ndim(q) == 0 else np.stack([one(float(each)) for each in q], axis=0)


def _median(x: Symbolic, axis: Any = None, keepdims: bool = False, **_: Any) -> Symbolic:
    """The element in the middle, or the mean of two."""
    if axis is None:
        raise ConversionError("the median of all rows together cannot be written into a graph", hint="axis=1")
    axis, lost = axis % x.ndim, _missing(x)
    size, ordered = known_size(x, axis), np.sort(np.where(lost, 0, x), axis=axis)
    middle = ordered.take(np.arange((size - 1) // 2, size // 2 + 1), axis).mean(axis=axis, keepdims=keepdims)
    return np.where(np.any(lost, axis=axis, keepdims=keepdims), np.nan, middle)


def _average(x: Symbolic, axis: Any = None, weights: Any = None, keepdims: bool = False, **_: Any) -> Symbolic:
    if weights is None:
        return np.mean(x, axis=axis, keepdims=keepdims)
    if axis is not None and np.ndim(weights) == 1 and x.ndim > 1:
        weights = np.asarray(weights).reshape([-1 if at == axis % x.ndim else 1 for at in range(x.ndim)])
    total = np.sum(lifted(x.build, weights) * np.ones_like(x), axis=axis, keepdims=keepdims)
    return np.sum(x * weights, axis=axis, keepdims=keepdims) / total


def _diff(x: Symbolic, n: int = 1, axis: int = -1, **_: Any) -> Symbolic:
    before = [slice(None)] * (axis % x.ndim)
    for _turn in range(n):
        x = x[(*before, slice(1, None))] - x[(*before, slice(None, -1))]
    return x


def _trapezoid(y: Symbolic, x: Any = None, dx: float = 1.0, axis: int = -1) -> Symbolic:
    before = [slice(None)] * (axis % y.ndim)
    wide = dx if x is None else np.diff(x)
    return np.sum((y[(*before, slice(1, None))] + y[(*before, slice(None, -1))]) / 2.0 * wide, axis=axis)


def _cumulated(x: Symbolic, axis: Any = None, **_: Any) -> Symbolic:
    if axis is None or axis % x.ndim != 1:
        raise ConversionError("np.cumprod of rows cannot be written into a graph", hint="axis=1")
    columns = [x[:, 0]]
    for at in range(1, known_size(x, 1)):
        columns.append(columns[-1] * x[:, at])
    return np.stack(columns, axis=1)


def _searched(bounds: Any, values: Any, side: str = "left", **_: Any) -> Symbolic:
    """How many bounds are below; not a number is beyond them all."""
    if not isinstance(values, Array) or isinstance(bounds, Array):
        raise ConversionError("np.searchsorted among what varies cannot be written into a graph")
    bounds, values = np.asarray(bounds), values.expand(-1)
    below = (values > bounds) if side == "left" else (values >= bounds)
    return np.sum((below | np.isnan(values)).astype(np.int64), axis=-1)


def _digitized(x: Symbolic, bins: Any, right: bool = False) -> Symbolic:
    if len(bins) > 1 and bins[0] > bins[-1]:
        return len(bins) - _searched(np.asarray(bins)[::-1], x, "left" if right else "right")
    return _searched(bins, x, "left" if right else "right")


def _interpolated(x: Symbolic, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Symbolic:
    if period is not None or isinstance(xp, Array) or isinstance(fp, Array):
        raise ConversionError("np.interp between what varies cannot be written into a graph")
    xp, fp, x = np.asarray(xp, float), np.asarray(fp, float), x.astype(np.float64)
    at = np.clip(_searched(xp, x, "right") - 1, 0, len(xp) - 2)
    slopes = np.diff(fp) / np.diff(xp)
    line, start, value = (lifted(x.build, table).take(at, 0) for table in (slopes, xp[:-1], fp[:-1]))
    found = line * (x - start) + value
    found = np.where(x < xp[0], fp[0] if left is None else left, found)
    return np.where(x > xp[-1], fp[-1] if right is None else right, np.where(x == xp[-1], fp[-1], found))


def _among(x: Symbolic, values: Any, invert: bool = False, **_: Any) -> Symbolic:
    from entrepot.exporters.sklearn.encoding import position

    found = position(x, list(np.ravel(values))) >= 0
    return ~found if invert else found


def _polynomial(p: Any, x: Symbolic) -> Symbolic:
    total = x * 0
    for each in np.asarray(p):
        total = total * x + each
    return total


def _sinc(x: Symbolic) -> Symbolic:
    far = np.where(x == 0, 1e-20, x * np.pi)
    return np.sin(far) / far


def _tensordot(x: Any, y: Any, axes: Any = 2) -> Symbolic:
    if axes != 1 or y.ndim > 2:
        raise ConversionError("np.tensordot but along one axis cannot be written into a graph", hint="np.einsum")
    return x @ y


SUMMARIES: dict[str, Callable[..., Any]] = {
    "nansum": _nan_sum, "nanmean": _nan_mean, "nanvar": _nan_var, "nanmax": _nan_max, "nanmin": _nan_min,
    "nanstd": lambda x, *args, **kwargs: np.sqrt(_nan_var(x, *args, **kwargs)),
    "var": variance, "std": lambda x, *args, **kwargs: np.sqrt(variance(x, *args, **kwargs)),
    "quantile": quantile, "percentile": lambda x, q, *args, **kwargs: quantile(x, np.asarray(q) / 100, *args, **kwargs),
    "median": _median,
    "average": _average, "diff": _diff, "trapezoid": _trapezoid, "cumprod": _cumulated,
    "ptp": lambda x, axis=None, keepdims=False, **_: (
        np.max(x, axis=axis, keepdims=keepdims) - np.min(x, axis=axis, keepdims=keepdims)
    ),
    "count_nonzero": lambda x, axis=None, keepdims=False: _nan_sum((x != 0).astype(np.int64), axis, keepdims),
    "searchsorted": _searched, "digitize": _digitized, "interp": _interpolated, "isin": _among, "polyval": _polynomial,
    "sinc": _sinc, "tensordot": _tensordot,
    "argsort": lambda x, axis=-1, **_: _order(x, axis),
}  # fmt: skip
"""By name."""


def _order(x: Symbolic, axis: int) -> Symbolic:
    from entrepot.exporters.sklearn.functions import top

    return top(x, known_size(x, axis % x.ndim), axis, largest=False)[1]
