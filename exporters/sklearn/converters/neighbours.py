"""Estimators that keep their data and look for the nearest rows of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic, lifted
from entrepot.exporters.sklearn.blocks import chosen, distances, log_sum_exp, outliers, voted
from entrepot.exporters.sklearn.columns import as_float
from entrepot.exporters.sklearn.converters.imputers import neighbour_weights
from entrepot.exporters.sklearn.functions import top
from entrepot.exporters.sklearn.table import Results, converts
from entrepot.ir.errors import ConversionError


def apart(model: Any, x: Any) -> Symbolic:
    """Distances to all rows that it was fitted with."""
    if model.metric == "precomputed":
        return as_float(x)
    given = dict(getattr(model, "metric_params", None) or {})
    return distances(as_float(x).astype(np.float64), _rows(model), model.effective_metric_, **{"p": model.p, **given})


def _rows(model: Any) -> Any:
    found = model._fit_X
    return found.toarray() if hasattr(found, "toarray") else found


def nearest(model: Any, x: Any, count: int | None = None) -> tuple[Symbolic, Symbolic]:
    """Distances to the nearest rows in order, and which they are; rows at no distance come last."""
    away: Any = apart(model, x)
    if model.effective_metric_ != "nan_euclidean":
        return top(away, count or model.n_neighbors, 1, largest=False)
    ordered: Any = np.where(np.isnan(away), np.inf, away)
    places: Any = top(ordered, count or model.n_neighbors, 1, largest=False)[1]
    return np.take_along_axis(away, places, 1), places


@converts("sklearn.KNeighborsClassifier")
def classifier(model: Any, x: Any) -> Results:
    """The shares of classes among the nearest rows."""
    away, places = nearest(model, x)
    weights = neighbour_weights(away, model.weights)
    return _classified(model, lambda labels: _counted(labels.take(places, 0), weights), x)


def _counted(labels: Symbolic, weights: Symbolic) -> Any:
    return lambda count: ((labels[:, :, None] == np.arange(count)).astype(np.float64) * weights[:, :, None]).sum(1)


def _classified(model: Any, counted: Any, x: Any) -> Results:
    several = model.outputs_2d_
    columns = model._y.T if several else [model._y]
    classes = model.classes_ if several else [model.classes_]
    shares = []
    for column, known in zip(columns, classes, strict=True):
        count = counted(lifted(as_float(x).build, np.asarray(column, np.int64)))(len(known))
        shares.append(count / count.sum(1, keepdims=True))
    labels = [voted(known, share) for known, share in zip(classes, shares, strict=True)]
    if several:
        return {"predict": np.stack(labels, axis=1), "predict_proba": shares}
    return {"predict": labels[0], "predict_proba": shares[0]}


@converts("sklearn.KNeighborsRegressor")
def regressor(model: Any, x: Any) -> Results:
    """The mean of the nearest rows."""
    away, places = nearest(model, x)
    worth = lifted(away.build, np.asarray(model._y, float)).take(places, 0)
    if model.weights in (None, "uniform"):
        return {"predict": worth.mean(1)}
    weights = neighbour_weights(away, model.weights)
    wide = weights if worth.ndim == 2 else weights[:, :, None]
    return {"predict": (worth * wide).sum(1) / (weights.sum(1) if worth.ndim == 2 else weights.sum(1, keepdims=True))}


def _within(model: Any, x: Any) -> tuple[Symbolic, Symbolic]:
    """What each row that it was fitted with counts, 0 beyond the radius; and whether there is one within."""
    away = apart(model, x)
    inside = away <= model.radius
    if model.weights in (None, "uniform"):
        weights = inside.astype(np.float64)
    elif model.weights == "distance":
        touching = (away == 0) & inside
        inverse = np.where(inside, 1.0 / np.where(away == 0, 1.0, away), 0.0)
        weights = np.where(touching.any(1, keepdims=True), touching.astype(np.float64), inverse)
    else:
        raise ConversionError("a function of distances within a radius cannot be followed", hint="weights='distance'")
    return weights, inside.any(1, keepdims=True)


@converts("sklearn.RadiusNeighborsClassifier")
def radius_classifier(model: Any, x: Any) -> Results:
    """The shares of classes within a radius; an outlier's label where there is none."""
    if model.outputs_2d_:
        raise ConversionError(
            "several labels of neighbours within a radius cannot be written", hint="one model for each"
        )
    weights, _ = _within(model, x)
    count = weights @ np.eye(len(model.classes_))[np.asarray(model._y, int)]
    alone = count.sum(1, keepdims=True) == 0
    outlier = model.outlier_label_
    label = None if outlier is None else np.ravel(outlier)[0]
    at = np.flatnonzero(model.classes_ == label) if label is not None else np.array([], int)
    if len(at):
        count = np.where(alone, np.eye(len(model.classes_))[at[0]], count)
    shares = count / np.where(count.sum(1, keepdims=True) == 0, 1.0, count.sum(1, keepdims=True))
    labels = voted(model.classes_, shares)
    if label is not None and not len(at):
        both = np.append(model.classes_, label)
        labels = chosen(both, np.where(alone[:, 0], np.int64(len(both) - 1), shares.argmax(1)))
    return {"predict": labels, "predict_proba": shares}


@converts("sklearn.RadiusNeighborsRegressor")
def radius_regressor(model: Any, x: Any) -> Results:
    """The mean within a radius, NaN where there is nothing."""
    weights, some = _within(model, x)
    target = np.asarray(model._y, float)
    total = weights @ (target[:, None] if target.ndim == 1 else target)
    mean = np.where(some, total / np.where(some, weights.sum(1, keepdims=True), 1.0), np.nan)
    return {"predict": mean[:, 0] if target.ndim == 1 else mean}


@converts("sklearn.KNeighborsTransformer")
def graph(model: Any, x: Any) -> Results:
    """Distances to the nearest rows, 0 for all others."""
    away = apart(model, x)
    count = model.n_neighbors + (model.mode == "distance")
    limit, places = top(away, count, 1, largest=False)
    one = (places[:, :, None] == np.arange(away.shape[1])).astype(np.float64)
    worth = limit[:, :, None] if model.mode == "distance" else 1.0
    return {"transform": (one * worth).sum(1)}


@converts("sklearn.RadiusNeighborsTransformer")
def radius_graph(model: Any, x: Any) -> Results:
    """Distances within a radius, 0 for all others."""
    away = apart(model, x)
    return {"transform": np.where(away <= model.radius, away if model.mode == "distance" else 1.0, 0.0)}


@converts("sklearn.LocalOutlierFactor")
def local_outliers(model: Any, x: Any) -> Results:
    """How much thinner the data is around a row than around its neighbours."""
    away, places = nearest(model, x, model.n_neighbors_)
    reach = lifted(away.build, model._distances_fit_X_[:, model.n_neighbors_ - 1]).take(places, 0)
    density = 1.0 / (np.maximum(away, reach).mean(1) + 1e-10)
    samples = -(lifted(away.build, model._lrd).take(places, 0) / density[:, None]).mean(1)
    return outliers(samples, model.offset_)


@converts("sklearn.KernelDensity")
def density(model: Any, x: Any) -> Results:
    """The logarithm of a sum of kernels; exact, where scikit-learn may stop early."""
    from sklearn.neighbors import KernelDensity

    data = np.asarray(model.tree_.data)
    away = distances(as_float(x).astype(np.float64), data, model.metric) / model.bandwidth_
    kernels: dict[str, Callable[[], Symbolic]] = {
        "gaussian": lambda: -0.5 * away * away,
        "tophat": lambda: np.where(away < 1, 0.0, -np.inf),
        "epanechnikov": lambda: np.log(np.maximum(1 - away * away, 0.0)),
        "exponential": lambda: -away,
        "linear": lambda: np.log(np.maximum(1 - away, 0.0)),
        "cosine": lambda: np.log(np.maximum(np.cos(0.5 * np.pi * np.minimum(away, 1.0)), 0.0)),
    }
    terms = kernels[model.kernel]()
    weights = model.tree_.sample_weight
    total = log_sum_exp(terms if weights is None else terms + np.log(np.asarray(weights)))
    one = KernelDensity(kernel=model.kernel, bandwidth=model.bandwidth_).fit(data[:1])
    norm = one.score_samples(data[:1])[0]  # of one kernel at its centre, where the term is 0
    count = len(data) if weights is None else model.tree_.sum_weight
    return {"score_samples": total + (norm - np.log(count))}


@converts("sklearn.BaseLabelPropagation")
def propagation(model: Any, x: Any) -> Results:
    """Labels of rows that are near."""
    from entrepot.exporters.sklearn.blocks import kernel

    x = as_float(x)
    if model.kernel == "knn":
        _, places = nearest(model.nn_fit, x)
        count = lifted(x.build, model.label_distributions_).take(places, 0).sum(1)
    else:
        name = model.kernel
        near = name(model.X_, x).T if callable(name) else kernel(x, model.X_, "rbf", gamma=model.gamma)
        count = near @ model.label_distributions_
    shares = count / count.sum(1, keepdims=True)
    return {"predict": voted(model.classes_, shares), "predict_proba": shares}
