"""Linear models: a product with coefficients, and a link."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.sklearn.blocks import binary_scores, by_sign, shares, sigmoid, softmax, two_columns
from entrepot.exporters.sklearn.columns import as_double, as_float
from entrepot.exporters.sklearn.table import Results, converts, result


def decision(model: Any, x: Any) -> Any:
    """``x @ coef.T + intercept``; a vector where there is one row of coefficients."""
    return as_float(x) @ np.asarray(model.coef_).T + model.intercept_


@converts("sklearn.LinearModel", "sklearn.LinearSVR", "sklearn.BaseSGDRegressor", "sklearn.PassiveAggressiveRegressor")
def linear(model: Any, x: Any) -> Results:
    """Regression."""
    return {"predict": decision(model, x)}


@converts("sklearn.RANSACRegressor")
def consensus(model: Any, x: Any) -> Results:
    """The regressor that was fitted to the inliers."""
    return {"predict": result(model.estimator_, x, "predict")}


@converts("sklearn._GeneralizedLinearRegressor")
def generalized(model: Any, x: Any) -> Results:
    """Regression under a link."""
    linear_part = decision(model, x)
    link = type(model._base_loss.link).__name__
    return {"predict": linear_part if link == "IdentityLink" else np.exp(linear_part)}


@converts("sklearn.PLSRegression", "sklearn.CCA", "sklearn.PLSCanonical", "sklearn.PLSSVD")
def partial_least_squares(model: Any, x: Any) -> Results:
    """Regression on, or onto, directions that two tables share."""
    x = as_double(x)
    if not hasattr(model, "coef_"):
        return {"transform": (x - model._x_mean) / model._x_std @ model.x_weights_}
    centred = x - model._x_mean
    predicted = centred @ model.coef_.T + model.intercept_
    one = predicted[:, 0] if model._predict_1d else predicted
    return {"predict": one, "transform": centred / model._x_std @ model.x_rotations_}


@converts("sklearn.LinearClassifierMixin", "sklearn.RidgeClassifier", "sklearn.LinearSVC", "sklearn.Perceptron")
def classifier(model: Any, x: Any) -> Results:
    """Scores, and the class by their sign or by the largest."""
    scores = binary_scores(decision(model, x))
    return {"predict": by_sign(model.classes_, scores), "decision_function": scores}


@converts("sklearn._RidgeClassifierMixin")
def ridge(model: Any, x: Any) -> Results:
    """A classifier, of several labels at once if it was fitted to them."""
    scores = binary_scores(decision(model, x))
    if model._label_binarizer.y_type_.startswith("multilabel"):
        return {"predict": (scores > 0).astype(np.int64), "decision_function": scores}
    return {"predict": by_sign(model.classes_, scores), "decision_function": scores}


def _one_versus_rest(scores: Any) -> Any:
    positive = sigmoid(scores)
    return two_columns(positive) if positive.ndim == 1 else uniform_shares(positive)


def uniform_shares(x: Any) -> Any:
    """Shares of each row's sum; equal ones where that is 0."""
    return np.where(x.sum(1, keepdims=True) == 0, 1.0 / x.shape[1], shares(x))


@converts("sklearn.LogisticRegression")
def logistic(model: Any, x: Any) -> Results:
    """A classifier with probabilities by softmax."""
    found = dict(classifier(model, x))
    scores = found["decision_function"]
    return {**found, "predict_proba": _one_versus_rest(scores) if scores.ndim == 1 else softmax(scores)}


@converts("sklearn.SGDClassifier")
def stochastic(model: Any, x: Any) -> Results:
    """A classifier whose probabilities depend on its loss."""
    found = dict(classifier(model, x))
    scores = found["decision_function"]
    if model.loss == "modified_huber":
        positive = (np.clip(scores, -1.0, 1.0) + 1.0) / 2.0
        found["predict_proba"] = two_columns(positive) if positive.ndim == 1 else uniform_shares(positive)
    if model.loss == "log_loss":
        found["predict_proba"] = _one_versus_rest(scores)
    return found


@converts("sklearn.SGDOneClassSVM")
def one_class(model: Any, x: Any) -> Results:
    """Outliers by the sign of a score."""
    samples = as_float(x) @ model.coef_.ravel()
    scores = samples - model.offset_
    return {
        "predict": np.where(scores >= 0, np.int64(1), np.int64(-1)),
        "decision_function": scores,
        "score_samples": samples,
    }


@converts("sklearn.LinearDiscriminantAnalysis")
def linear_discriminant(model: Any, x: Any) -> Results:
    """A classifier; its transformation is onto the directions that separate classes."""
    found = dict(logistic(model, x))
    if hasattr(model, "scalings_"):
        x = as_float(x)
        wide = (x - model.xbar_) @ model.scalings_ if model.solver == "svd" else x @ model.scalings_
        found["transform"] = wide[:, : model._max_components]
    return found


@converts("sklearn.QuadraticDiscriminantAnalysis")
def quadratic_discriminant(model: Any, x: Any) -> Results:
    """A gaussian for each class."""
    x = as_double(x)
    norms = []
    for rotation, scaling, mean in zip(model.rotations_, model.scalings_, model.means_, strict=True):
        turned = (x - mean) @ (rotation * scaling ** (-0.5))
        norms.append((turned * turned).sum(1))
    logs = np.asarray([np.sum(np.log(scaling)) for scaling in model.scalings_])
    scores = -0.5 * (np.stack(norms, axis=1) + logs) + np.log(model.priors_)
    return from_log_joint(model, scores)


def from_log_joint(model: Any, scores: Any) -> Results:
    """What follows from scores that are logarithms of probabilities up to a term per row."""
    apart = scores[:, 1] - scores[:, 0] if len(model.classes_) == 2 else scores
    by_score = by_sign(model.classes_, scores)
    return {"predict": by_score, "predict_proba": softmax(scores), "decision_function": apart}
