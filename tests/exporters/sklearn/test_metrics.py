"""Neighbours in every metric for which there is a formula."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor

import entrepot as ep

RANDOM = np.random.default_rng(0)
ROWS, OTHERS = RANDOM.normal(size=(60, 4)), RANDOM.normal(size=(25, 4))
SPREAD = np.cov(ROWS.T)
METRICS = {
    "manhattan": {},
    "chebyshev": {},
    "cosine": {},
    "canberra": {},
    "braycurtis": {},
    "correlation": {"algorithm": "brute"},
    "minkowski": {"p": 3, "metric_params": {"w": np.array([1.0, 2.0, 3.0, 4.0])}},
    "euclidean": {"metric_params": {"w": np.array([1.0, 2.0, 3.0, 4.0])}, "metric": "minkowski"},
    "mahalanobis": {"metric_params": {"VI": np.linalg.inv(SPREAD)}, "algorithm": "brute"},
    "seuclidean": {"metric_params": {"V": ROWS.var(axis=0)}},
}

TRUTHS = ("jaccard", "dice", "rogerstanimoto", "russellrao", "sokalsneath")


@pytest.mark.parametrize("metric", METRICS)
def test_neighbours_are_as_far_as_scikit_learn_says(metric):
    given = {"metric": metric, "weights": "distance", **METRICS[metric]}
    model = KNeighborsRegressor(5, **given).fit(ROWS, ROWS @ [1.0, -2.0, 3.0, 0.5])
    session = ep.Session(ep.export(model, OTHERS[:7], progress=False), providers=["onnxruntime"])
    (found,) = session.run({"X": OTHERS}).values()
    np.testing.assert_allclose(found, model.predict(OTHERS), rtol=1e-9)


GAPS = np.where(RANDOM.random(ROWS.shape) < 0.2, np.nan, ROWS)
OTHER_ROWS = {
    "hamming": np.round(ROWS),
    "haversine": ROWS[:, :2],
    "nan_euclidean": GAPS,
    **dict.fromkeys(TRUTHS, ROWS > 0.3),
}


def test_rows_that_share_no_column_are_no_neighbours():
    rows = ROWS.copy()
    rows[::3, 1:], rows[1::3, 0] = np.nan, np.nan
    model = KNeighborsRegressor(3, metric="nan_euclidean").fit(rows[10:], np.arange(50.0))
    session = ep.Session(ep.export(model, rows[:7], progress=False), providers=["onnxruntime"])
    (found,) = session.run({session.inputs[0].name: rows[:10]}).values()
    np.testing.assert_allclose(found, model.predict(rows[:10]), rtol=1e-9)


@pytest.mark.parametrize("metric", OTHER_ROWS)
def test_neighbours_of_other_kinds_of_rows_are_as_far_as_scikit_learn_says(metric):
    rows = OTHER_ROWS[metric]
    model = KNeighborsRegressor(50, metric=metric, weights=lambda away: 1 / (1 + away)).fit(rows[10:], np.arange(50.0))
    session = ep.Session(ep.export(model, rows[:7], progress=False), providers=["onnxruntime"])
    (found,) = session.run({session.inputs[0].name: rows[:10]}).values()
    np.testing.assert_allclose(found, model.predict(rows[:10]), rtol=1e-9)
