"""Scores as probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic
from entrepot.exporters.sklearn.blocks import sigmoid, softmax, voted
from entrepot.exporters.sklearn.columns import as_double, matrix
from entrepot.exporters.sklearn.converters.preprocessing import interpolated
from entrepot.exporters.sklearn.table import Results, converts, result


@converts("sklearn.IsotonicRegression")
def isotonic(model: Any, x: Any) -> Results:
    """Between points that never go down."""
    x = matrix(x)
    flat = as_double(x).reshape(-1).astype(model.X_thresholds_.dtype)
    found = _steps(model, flat)
    return {"predict": found, "transform": found}


def _steps(model: Any, x: Symbolic) -> Symbolic:
    if model.out_of_bounds == "clip":
        x = np.clip(x, model.X_min_, model.X_max_)
    found = interpolated(x, model.X_thresholds_, model.y_thresholds_)
    outside = (x < model.X_min_) | (x > model.X_max_)
    return np.where(outside, np.nan, found).astype(x.dtype)


@converts("sklearn.CalibratedClassifierCV")
def calibrated(model: Any, x: Any) -> Results:
    """The mean of calibrated classifiers."""
    shares = [_calibrated(part, x) for part in model.calibrated_classifiers_]
    mean = sum(shares[1:], shares[0]) / len(shares)
    return {"predict": voted(model.classes_, mean), "predict_proba": mean}


def _calibrated(model: Any, x: Any) -> Symbolic:
    count, inner = len(model.classes), model.estimator
    scores = _scores(inner, x)
    if model.method == "temperature":
        logits = _logits(scores, of_probabilities=not hasattr(inner, "decision_function"), count=count)
        return softmax(logits * model.calibrators[0].beta_)
    columns = [scores] if scores.ndim == 1 else [scores[:, at] for at in range(scores.shape[1])]
    columns = columns[1:] if count == 2 and len(columns) == 2 else columns
    parts = [_one(calibrator, column) for calibrator, column in zip(model.calibrators, columns, strict=True)]
    if count == 2:
        found = np.stack([1.0 - parts[0], parts[0]], axis=1)
    else:
        places = np.searchsorted(model.classes, inner.classes_)
        zero = parts[0] * 0.0
        order = [parts[list(places).index(at)] if at in places else zero for at in range(count)]
        shares = np.stack(order, axis=1)
        total = shares.sum(1, keepdims=True)
        found = np.where(total == 0, 1 / count, shares / np.where(total == 0, 1.0, total))
    return np.where((found > 1.0) & (found <= 1.0 + 1e-5), 1.0, found)


def _scores(model: Any, x: Any) -> Symbolic:
    return result(model, x, "decision_function" if hasattr(model, "decision_function") else "predict_proba")


def _logits(scores: Symbolic, *, of_probabilities: bool, count: int) -> Symbolic:
    if scores.ndim == 1:
        return np.stack([-scores, scores], axis=1)
    return np.log(scores + 1e-12) if of_probabilities else scores


def _one(calibrator: Any, scores: Symbolic) -> Symbolic:
    if hasattr(calibrator, "a_"):
        return sigmoid(-(scores * calibrator.a_ + calibrator.b_))
    return _steps(calibrator, scores.astype(calibrator.X_thresholds_.dtype)).astype(np.float64)
