"""What is missing, filled in."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic, lifted
from entrepot.exporters.sklearn.columns import as_float, beside, matrix
from entrepot.exporters.sklearn.table import Results, converts, result
from entrepot.ir.errors import ConversionError


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


@converts("sklearn.IterativeImputer")
def iterative(model: Any, x: Any) -> Results:
    """What regressors say of each column in turn, given all others."""
    x = as_float(x)
    gone = _missing(x, model.missing_values)
    first = result(model.initial_imputer_, x, "transform")
    kept = np.flatnonzero(~np.isnan(np.asarray(model.initial_imputer_.statistics_, float)) | model.keep_empty_features)
    columns, absent = [first[:, at] for at in range(first.shape[1])], gone[:, kept]
    for step in model.imputation_sequence_:
        at, others = step.feat_idx, list(step.neighbor_feat_idx)
        said = result(step.estimator, np.stack([columns[other] for other in others], axis=1), "predict")
        said = np.clip(said, model._min_value[at], model._max_value[at]).astype(x.dtype)
        columns[at] = np.where(absent[:, at], said, columns[at])
    return {"transform": with_indicator(model, np.stack(columns, axis=1), gone)}
