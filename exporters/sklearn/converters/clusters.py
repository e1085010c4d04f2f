"""Clustering: the nearest of some centres."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic
from entrepot.exporters.sklearn.blocks import by_sign, chosen, euclidean, softmax, squared_distances
from entrepot.exporters.sklearn.columns import as_double, as_float
from entrepot.exporters.sklearn.table import Results, converts
from entrepot.ir.errors import UnsupportedOpError


@converts("sklearn._BaseKMeans")
def k_means(model: Any, x: Any) -> Results:
    """The nearest centre, and the distances to all."""
    away = squared_distances(x, model.cluster_centers_)
    return {"predict": away.argmin(1).astype(np.int32), "transform": np.sqrt(away)}


@converts("sklearn.BisectingKMeans")
def bisecting(model: Any, x: Any) -> Results:
    """Down a tree of two centres each."""
    x = as_float(x)
    moved = x - model._X_mean if hasattr(model, "_X_mean") else x
    labels = _below(model._bisecting_tree, moved)
    return {"predict": labels.astype(np.int32), "transform": euclidean(x, model.cluster_centers_)}


def _below(node: Any, x: Symbolic) -> Symbolic:
    if node.left is None:
        return x.rows(np.int64(node.label))
    centres = np.vstack([node.left.center, node.right.center])
    nearest = squared_distances(x, centres).argmin(1)
    return np.where(nearest == 0, _below(node.left, x), _below(node.right, x))


@converts("sklearn.MeanShift", "sklearn.AffinityPropagation")
def centres(model: Any, x: Any) -> Results:
    """The nearest centre."""
    return {"predict": squared_distances(x, model.cluster_centers_).argmin(1)}


@converts("sklearn.Birch")
def birch(model: Any, x: Any) -> Results:
    """The cluster of the nearest of the small clusters."""
    away = squared_distances(x, model.subcluster_centers_)
    return {"predict": chosen(model.subcluster_labels_, away.argmin(1)), "transform": np.sqrt(away)}


@converts("sklearn.FeatureAgglomeration")
def agglomerated(model: Any, x: Any) -> Results:
    """Columns pooled by cluster."""
    x = as_float(x)
    pools = {np.mean: "mean", np.max: "max", np.min: "min", np.sum: "sum"}
    if model.pooling_func not in pools:
        raise UnsupportedOpError("this pooling_func cannot be written", hint="use np.mean, np.max, np.min or np.sum")
    pool = pools[model.pooling_func]
    parts = [getattr(x[:, model.labels_ == label], pool)(axis=1, keepdims=True) for label in np.unique(model.labels_)]
    return {"transform": np.concatenate(parts, axis=1)}


@converts("sklearn.NearestCentroid")
def nearest_centroid(model: Any, x: Any) -> Results:
    """The nearest mean of a class, columns measured by their deviation."""
    x = as_float(x)
    if model.metric == "manhattan":
        from entrepot.exporters.sklearn.blocks import distances, voted

        return {"predict": voted(model.classes_, -distances(x, model.centroids_, "manhattan"))}
    scaled, centroids = x, model.centroids_
    used = model.within_class_std_dev_ != 0
    scaled = np.where(used, x / np.where(used, model.within_class_std_dev_, 1.0), x)
    centroids = np.where(used, centroids / np.where(used, model.within_class_std_dev_, 1.0), centroids)
    away = squared_distances(scaled, centroids)
    scores = -away + 2.0 * np.log(model.class_prior_)
    apart = scores[:, 1] - scores[:, 0] if len(model.classes_) == 2 else scores
    uniform = np.isclose(model.class_prior_, 1 / len(model.classes_)).all()
    nearest = (
        by_sign(model.classes_, scores)
        if not uniform
        else chosen(model.classes_, squared_distances(x, model.centroids_).argmin(1))
    )
    return {"predict": nearest, "decision_function": apart, "predict_proba": softmax(scores)}


@converts("sklearn.EllipticEnvelope")
def envelope(model: Any, x: Any) -> Results:
    """Outliers by their distance from the mean, as the covariance measures it."""
    x = as_double(x) - model.location_
    samples = -((x @ model.get_precision()) * x).sum(1)
    scores = samples - model.offset_
    return {
        "predict": np.where(scores >= 0, np.int64(1), np.int64(-1)),
        "decision_function": scores,
        "score_samples": samples,
    }
