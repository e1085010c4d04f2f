"""Scaling, binning and expanding of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic, lifted
from entrepot.exporters.sklearn.columns import as_double, as_float, beside, matrix
from entrepot.exporters.sklearn.table import Results, converts, result
from entrepot.ir.errors import ConversionError


@converts("sklearn.StandardScaler")
def standard(model: Any, x: Any) -> Results:
    """Mean 0 and deviation 1."""
    x = as_float(x)
    x = x - model.mean_.astype(x.dtype) if model.with_mean else x
    return {"transform": x / model.scale_.astype(x.dtype) if model.with_std else x}


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
    x = as_float(x)
    x = x - model.center_.astype(x.dtype) if model.with_centering else x
    return {"transform": x / model.scale_.astype(x.dtype) if model.with_scaling else x}


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

    pieces = PPoly.from_spline((spl.t, np.eye(spl.c.shape[0])[:, : spl.c.shape[0]] @ spl.c, spl.k))
    places = np.unique(pieces.x)
    first = np.searchsorted(pieces.x, places, side="right") - 1
    coefficients = pieces.c[:, np.minimum(first, pieces.c.shape[1] - 1)]
    inner = [at for at, place in enumerate(places) if spl.t[spl.k] <= place < spl.t[-spl.k - 1]]
    at = np.clip(bin_of(x, places[inner]) - 1, np.int64(0), np.int64(len(inner) - 1))
    away = (x - lifted(x.build, places[inner]).take(at, 0))[:, None]
    total: Any = 0.0
    for row in coefficients:
        total = total * away + lifted(x.build, row[inner]).take(at, 0)
    return total


@converts("sklearn.SimpleImputer")
def imputer(model: Any, x: Any) -> Results:
    """A number, or a word, for what is missing."""
    x = matrix(x)
    if x.dtype == object:
        return _text_imputer(model, x)
    x = x if x.dtype.kind != "b" else x.astype(np.float64)
    gone = _missing(x, model.missing_values)
    statistics = np.asarray(model.statistics_, float)
    kept = np.flatnonzero(~np.isnan(statistics) | model.keep_empty_features)
    fill = np.where(np.isnan(statistics), 0.0, statistics)[kept].astype(x.dtype)
    table = np.where(gone, lifted(x.build, np.zeros(len(statistics), x.dtype)), x)[:, kept]
    table = np.where(gone[:, kept], fill, table)
    return {"transform": with_indicator(model, table, gone)}


def _text_imputer(model: Any, x: Symbolic) -> Results:
    if not isinstance(model.missing_values, str):
        return {"transform": x}  # what a graph gets as text is never missing
    gone = x == model.missing_values
    return {"transform": np.where(gone, np.asarray(model.statistics_, object), x)}


def _missing(x: Symbolic, value: Any) -> Symbolic:
    is_nan = value is None or (isinstance(value, float) and np.isnan(value))
    if not is_nan:
        return x == x.dtype.type(value)
    return np.isnan(x)


def with_indicator(model: Any, table: Symbolic, gone: Symbolic) -> Symbolic:
    """The table, and beside it what was missing if that is wanted."""
    if not model.add_indicator:
        return table
    return beside([table, gone[:, list(model.indicator_.features_)].astype(table.dtype)])


@converts("sklearn.MissingIndicator")
def indicator(model: Any, x: Any) -> Results:
    """What is missing."""
    return {"transform": _missing(matrix(x), model.missing_values)[:, list(model.features_)]}


@converts("sklearn.KNNImputer")
def neighbour_imputer(model: Any, x: Any) -> Results:
    """What the nearest rows have that have it, nearest by the columns that both have."""
    from entrepot.exporters.sklearn.functions import top

    x = as_float(x)
    gone, known, known_gone = _missing(x, model.missing_values), model._fit_X, model._mask_fit_X
    both = (~gone).astype(x.dtype) @ (~known_gone).astype(x.dtype).T
    plain, clear = np.where(gone, x.dtype.type(0), x), np.where(known_gone, 0, known).astype(x.dtype)
    present, there = (~gone).astype(x.dtype), (~known_gone).astype(x.dtype)
    apart = (plain * plain) @ there.T - 2 * (plain @ clear.T) + present @ (clear * clear).T
    scaled = np.maximum(apart, 0.0) / np.maximum(both, 1.0) * x.shape[1]
    away: Symbolic = np.where(both == 0, np.inf, np.sqrt(scaled))
    columns = []
    for at in range(x.shape[1] or 0):
        donors = np.flatnonzero(~known_gone[:, at])
        if not len(donors):
            columns.append(plain[:, at])
            continue
        nearest, places = top(away[:, donors], min(model.n_neighbors, len(donors)), 1, largest=False)
        worth = lifted(x.build, known[donors, at].astype(x.dtype)).take(places, 0)
        found = _weighted(worth, nearest, model.weights)
        column_mean = known[donors, at].mean()
        found = np.where(np.isinf(nearest[:, 0]), x.dtype.type(column_mean), found)
        columns.append(np.where(gone[:, at], found, plain[:, at]))
    kept = [at for at in range(len(columns)) if model._valid_mask[at] or model.keep_empty_features]
    return {"transform": with_indicator(model, np.stack([columns[at] for at in kept], axis=1), gone)}


def _weighted(worth: Symbolic, away: Symbolic, weights: Any) -> Symbolic:
    shares = neighbour_weights(away, weights) * np.where(np.isinf(away), 0.0, 1.0).astype(worth.dtype)
    total = shares.sum(1)
    return (worth * shares).sum(1) / np.where(total == 0, 1.0, total)


def neighbour_weights(away: Symbolic, weights: Any) -> Symbolic:
    """What neighbours at some distances count.

    Raises:
        ConversionError: A function says so that cannot be followed.
    """
    if weights in (None, "uniform"):
        return away * 0.0 + 1.0 if away.dtype.kind != "f" else np.where(np.isinf(away), 1.0, 1.0).astype(away.dtype)
    if callable(weights):
        return weights(away)
    if weights != "distance":
        raise ConversionError(f"weights={weights!r} is not known")
    at_once = away == 0
    inverse = 1.0 / np.where(at_once, 1.0, away)
    return np.where(at_once.any(1, keepdims=True), at_once.astype(away.dtype), inverse).astype(away.dtype)


@converts("sklearn.AdditiveChi2Sampler")
def additive_chi2(model: Any, x: Any) -> Results:
    """A map whose products are like those of a chi-squared kernel."""
    x, interval = as_float(x), model.sample_interval
    interval = {1: 0.8, 2: 0.5, 3: 0.4}[model.sample_steps] if interval is None else interval
    positive = x > 0
    clear = np.where(positive, x, x.dtype.type(1))
    parts = [np.sqrt(clear * interval)]
    log, twice = interval * np.log(clear), 2 * clear * interval
    for step in range(1, model.sample_steps):
        factor = np.sqrt(twice / np.cosh(np.pi * step * interval))
        parts += [factor * np.cos(step * log), factor * np.sin(step * log)]
    return {"transform": np.concatenate([np.where(positive, part, x.dtype.type(0)) for part in parts], axis=1)}


@converts("sklearn.SkewedChi2Sampler")
def skewed_chi2(model: Any, x: Any) -> Results:
    """Cosines of random directions of logarithms."""
    logs = np.log(as_float(x) + model.skewedness)
    return {"transform": np.cos(logs @ model.random_weights_ + model.random_offset_) * np.sqrt(2 / model.n_components)}


@converts("sklearn.RBFSampler")
def random_cosines(model: Any, x: Any) -> Results:
    """Cosines of random directions."""
    turned = as_float(x) @ model.random_weights_ + model.random_offset_
    return {"transform": np.cos(turned) * (2.0 / model.n_components) ** 0.5}


@converts("sklearn.PolynomialCountSketch")
def count_sketch(model: Any, x: Any) -> Results:
    """Circular convolutions of sketches, which are products under the Fourier transform."""
    x = as_double(x)
    count, size = model.degree, model.n_components
    if model.coef0 != 0:
        x = np.concatenate([np.sqrt(model.gamma) * x, x.rows(np.full(1, np.sqrt(model.coef0)))], axis=1)
    else:
        x = np.sqrt(model.gamma) * x
    total = None
    for d in range(count):
        spread = np.zeros((model.indexHash_.shape[1], size))
        spread[np.arange(model.indexHash_.shape[1]), model.indexHash_[d]] = model.bitHash_[d]
        sketch = x @ spread
        total = sketch if total is None else _convolved(total, sketch, size)
    return {"transform": total}


def _convolved(a: Symbolic, b: Symbolic, size: int) -> Symbolic:
    turned = (np.arange(size)[:, None] - np.arange(size)[None, :]) % size  # of b, for each place of the result and of a
    return (b.take(turned, 1) * a[:, None, :]).sum(2)
