"""Scaling, binning and expanding of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic, lifted
from entrepot.exporters.sklearn.columns import as_float, matrix
from entrepot.exporters.sklearn.table import Results, converts, result


@converts("sklearn.StandardScaler")
def standard(model: Any, x: Any) -> Results:
    """Mean 0 and deviation 1."""
    mean, scale = model.mean_ if model.with_mean else None, model.scale_ if model.with_std else None
    return {"transform": _moved_and_scaled(x, mean, scale)}


def _moved_and_scaled(x: Any, center: Any, scale: Any) -> Any:
    x = as_float(x)
    x = x if center is None else x - center.astype(x.dtype)
    return x if scale is None else x / scale.astype(x.dtype)


@converts("sklearn.MinMaxScaler")
def min_max(model: Any, x: Any) -> Results:
    """From 0 to 1."""
    x = as_float(x)
    x = x * model.scale_.astype(x.dtype) + model.min_.astype(x.dtype)
    return {"transform": np.clip(x, *map(x.dtype.type, model.feature_range)) if model.clip else x}


@converts("sklearn.MaxAbsScaler")
def max_abs(model: Any, x: Any) -> Results:
    """At most 1 in size."""
    x = as_float(x)
    x = x / model.scale_.astype(x.dtype)
    return {"transform": np.clip(x, x.dtype.type(-1), x.dtype.type(1)) if getattr(model, "clip", False) else x}


@converts("sklearn.RobustScaler")
def robust(model: Any, x: Any) -> Results:
    """Median 0, and a range of quantiles of 1."""
    median, scale = model.center_ if model.with_centering else None, model.scale_ if model.with_scaling else None
    return {"transform": _moved_and_scaled(x, median, scale)}


@converts("sklearn.Normalizer")
def normalizer(model: Any, x: Any) -> Results:
    """Rows of length 1."""
    x = as_float(x)
    match model.norm:
        case "l1":
            length = np.abs(x).sum(1, keepdims=True)
        case "max":
            length = np.abs(x).max(1, keepdims=True)
        case _:
            length = np.sqrt((x * x).sum(1, keepdims=True))
    return {"transform": x / np.where(length == 0, x.dtype.type(1), length)}


@converts("sklearn.Binarizer")
def binarizer(model: Any, x: Any) -> Results:
    """1 above a threshold, else 0."""
    x = matrix(x)
    return {"transform": (x > model.threshold).astype(x.dtype)}


@converts("sklearn.PolynomialFeatures")
def polynomial(model: Any, x: Any) -> Results:
    """Products of columns, each made of one that is there and a column."""
    x = as_float(x)
    known: dict[tuple[int, ...], Symbolic] = {(): x.rows(x.dtype.type(1))}
    for powers in model.powers_:
        factors = tuple(int(at) for at in np.repeat(np.arange(len(powers)), powers))
        for end in range(1, len(factors) + 1):
            if factors[:end] not in known:
                column = x[:, factors[end - 1]]
                known[factors[:end]] = column if end == 1 else known[factors[: end - 1]] * column
    order = [tuple(int(at) for at in np.repeat(np.arange(len(powers)), powers)) for powers in model.powers_]
    return {"transform": np.stack([known[factors] for factors in order], axis=1)}


@converts("sklearn.PowerTransformer")
def power(model: Any, x: Any) -> Results:
    """Powers that make columns more normal."""
    x = as_float(x)
    columns = [_power(model.method, x[:, at], float(lam)) for at, lam in enumerate(model.lambdas_)]
    table = np.stack(columns, axis=1)
    return {"transform": result(model._scaler, table, "transform") if model.standardize else table}


def _power(method: str, x: Symbolic, lam: float) -> Symbolic:
    if method == "box-cox":
        return np.log(x) if lam == 0 else np.expm1(np.log(x) * lam) / lam
    up, down, two = np.log1p(np.maximum(x, 0.0)), np.log1p(np.maximum(-x, 0.0)), 2 - lam
    above = up if abs(lam) < 1e-15 else np.expm1(up * lam) / lam
    below = -down if abs(two) < 1e-15 else -np.expm1(down * two) / two
    return np.where(np.isnan(x), x, np.where(x >= 0, above, below))


@converts("sklearn.QuantileTransformer")
def quantile(model: Any, x: Any) -> Results:
    """Ranks among the values of a column."""
    x = as_float(x)
    columns = [_ranked(model, x[:, at], model.quantiles_[:, at]) for at in range(x.shape[1] or 0)]
    return {"transform": np.stack(columns, axis=1).astype(x.dtype)}


def _ranked(model: Any, x: Symbolic, quantiles: Any) -> Symbolic:
    from scipy.special import ndtri  # a ufunc, which arrays of a graph take

    x = x.astype(np.float64)
    references, normal = model.references_, model.output_distribution == "normal"
    up = interpolated(x, quantiles, references)
    down = interpolated(-x, -quantiles[::-1], -references[::-1])
    rank = 0.5 * (up - down)
    least, most = (
        (x - 1e-7 < quantiles[0], x + 1e-7 > quantiles[-1]) if normal else (x == quantiles[0], x == quantiles[-1])
    )
    rank = np.where(least, 0.0, np.where(most, 1.0, rank))
    if normal:
        ends = [ndtri(1e-7 - np.spacing(1)), ndtri(1 - (1e-7 - np.spacing(1)))]
        rank = np.where(least, ends[0], np.where(most, ends[1], ndtri(np.clip(rank, 1e-300, 1.0))))
        rank = np.clip(rank, *ends)
    return np.where(np.isnan(x), x, rank)


def interpolated(x: Symbolic, known: Any, values: Any) -> Symbolic:
    """``np.interp(x, known, values)``, of the last of points that are at one place."""
    known, values = np.asarray(known, float), np.asarray(values, float)
    if len(known) == 1:
        return x * 0.0 + values[0]
    left = np.clip(bin_of(x, known) - 1, np.int64(0), np.int64(len(known) - 2))
    width = np.diff(known)
    slopes = np.diff(values) / np.where(width == 0, 1.0, width)
    place = lifted(x.build, known).take(left, 0)
    inside = lifted(x.build, slopes).take(left, 0) * (x - place) + lifted(x.build, values).take(left, 0)
    return np.where(x < known[0], values[0], np.where(x >= known[-1], values[-1], inside))


def bin_of(x: Symbolic, edges: Any, side: str = "right") -> Symbolic:
    """``np.searchsorted(edges, x, side)``."""
    apart = x.expand(-1)
    passed = apart >= np.asarray(edges) if side == "right" else apart > np.asarray(edges)
    return passed.astype(np.int64).sum(-1)


@converts("sklearn.KBinsDiscretizer")
def bins(model: Any, x: Any) -> Results:
    """The number of the bin, one-hot if that is wanted."""
    x = as_float(x)
    x = x if model.dtype is None else x.astype(model.dtype)
    found = [bin_of(x[:, at], edges[1:-1].astype(x.dtype)) for at, edges in enumerate(model.bin_edges_)]
    if model.encode == "ordinal":
        return {"transform": np.stack(found, axis=1).astype(x.dtype)}
    parts = [column[:, None] == np.arange(count) for column, count in zip(found, model.n_bins_, strict=True)]
    return {"transform": np.concatenate(parts, axis=1).astype(x.dtype)}


@converts("sklearn.SplineTransformer")
def spline(model: Any, x: Any) -> Results:
    """Values of splines at each element."""
    x = as_float(x)
    parts = [_splined(model, spl, x[:, at]) for at, spl in enumerate(model.bsplines_)]
    parts = parts if model.include_bias else [part[:, :-1] for part in parts]
    return {"transform": np.concatenate(parts, axis=1).astype(x.dtype)}


def _splined(model: Any, spl: Any, x: Symbolic) -> Symbolic:
    missing, x, k = np.isnan(x)[:, None], x.astype(np.float64), spl.k
    least, most = spl.t[k], spl.t[-k - 1]
    if model.extrapolation == "periodic":
        n = spl.t.size - spl.k - 1
        period = spl.t[n] - spl.t[k]
        x = spl.t[k] + (x - spl.t[k]) - np.floor((x - spl.t[k]) / period) * period
        least, most = spl.t[0], spl.t[-1]
    clear = np.where(np.isnan(x), least, x)
    found = _piecewise(
        spl, clear if model.extrapolation in ("continue", "periodic", "error") else np.clip(clear, least, most)
    )
    if model.extrapolation == "linear":
        below, above = np.minimum(clear - least, 0.0), np.maximum(clear - most, 0.0)
        found = found + below[:, None] * spl(least, nu=1) + above[:, None] * spl(most, nu=1)
    return np.where(missing, 0.0 if model.handle_missing == "zeros" else np.nan, found)


def _piecewise(spl: Any, x: Symbolic) -> Symbolic:
    """The polynomial of the interval that each element lies in."""
    from scipy.interpolate import PPoly

    pieces = [PPoly.from_spline((spl.t, column, spl.k)) for column in spl.c.T]
    places = np.unique(spl.t)
    first = np.minimum(np.searchsorted(spl.t, places, side="right") - 1, pieces[0].c.shape[1] - 1)
    coefficients = np.stack([piece.c[:, first] for piece in pieces], axis=2)
    inner = [at for at, place in enumerate(places) if spl.t[spl.k] <= place < spl.t[-spl.k - 1]]
    if not inner:  # a column that never changed
        return np.isnan(x).astype(x.dtype)[:, None] * np.zeros(spl.c.shape[1])
    at = np.clip(bin_of(x, places[inner]) - 1, np.int64(0), np.int64(len(inner) - 1))
    away = (x - lifted(x.build, places[inner]).take(at, 0))[:, None]
    total: Any = 0.0
    for row in coefficients:
        total = total * away + lifted(x.build, row[inner]).take(at, 0)
    return total
