"""Naive Bayes and mixtures of gaussians."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import lifted
from entrepot.exporters.sklearn.blocks import log_sum_exp, voted
from entrepot.exporters.sklearn.columns import as_float, matrix
from entrepot.exporters.sklearn.table import Results, converts


def _posterior(model: Any, joint: Any) -> Results:
    shares = np.exp(joint - log_sum_exp(joint, keepdims=True))
    return {"predict": voted(model.classes_, joint), "predict_proba": shares}


@converts("sklearn.GaussianNB")
def gaussian(model: Any, x: Any) -> Results:
    """A normal distribution per column and class."""
    x = as_float(x)
    joint = [
        np.log(prior) - 0.5 * np.sum(np.log(2 * np.pi * var)) - 0.5 * ((x - mean) ** 2 / var).sum(1)
        for prior, mean, var in zip(model.class_prior_, model.theta_, model.var_, strict=True)
    ]
    return _posterior(model, np.stack(joint, axis=1))


@converts("sklearn.MultinomialNB")
def multinomial(model: Any, x: Any) -> Results:
    """Counts of words."""
    return _posterior(model, as_float(x) @ model.feature_log_prob_.T + model.class_log_prior_)


@converts("sklearn.ComplementNB")
def complement(model: Any, x: Any) -> Results:
    """Counts of words, against those of all other classes."""
    joint = as_float(x) @ model.feature_log_prob_.T
    return _posterior(model, joint + model.class_log_prior_ if len(model.classes_) == 1 else joint)


@converts("sklearn.BernoulliNB")
def bernoulli(model: Any, x: Any) -> Results:
    """Whether a word occurs."""
    x = as_float(x)
    x = x if model.binarize is None else (x > model.binarize).astype(x.dtype)
    absent = np.log(1 - np.exp(model.feature_log_prob_))
    joint = x @ (model.feature_log_prob_ - absent).T
    return _posterior(model, joint + (model.class_log_prior_ + absent.sum(1)))


@converts("sklearn.CategoricalNB")
def categorical(model: Any, x: Any) -> Results:
    """A table of probabilities per column."""
    x = matrix(x).astype(np.int64)
    joint: Any = model.class_log_prior_
    for at, table in enumerate(model.feature_log_prob_):
        joint = joint + lifted(x.build, table.T).take(x[:, at], 0)
    return _posterior(model, joint)


@converts("sklearn.BaseMixture")
def mixture(model: Any, x: Any) -> Results:
    """How probable each gaussian is, and all of them together."""
    x = as_float(x)
    weighted = _log_gaussians(model, x) + np.asarray(_log_weights(model), x.dtype)
    total = log_sum_exp(weighted, keepdims=True)
    return {
        "predict": weighted.argmax(1),
        "predict_proba": np.exp(weighted - total),
        "score_samples": total[:, 0],
    }


def _log_weights(model: Any) -> Any:
    return model._estimate_log_weights() if hasattr(model, "_estimate_log_weights") else np.log(model.weights_)


def _log_gaussians(model: Any, x: Any) -> Any:
    """A term per gaussian that depends on nothing, and a quadratic form of each row."""
    features = model.means_.shape[1]
    squares = _squares(model, x, model.means_, model.precisions_cholesky_)
    zero = np.zeros((1, features), model.means_.dtype)
    at_zero = _squares_known(model, zero[0])
    constant = model._estimate_log_prob(zero)[0] + 0.5 * at_zero
    return -0.5 * squares + np.asarray(constant, x.dtype)


def _factors(model: Any) -> list[Any]:
    chol, count, features = model.precisions_cholesky_, len(model.means_), model.means_.shape[1]
    match model.covariance_type:
        case "full":
            return list(chol)
        case "tied":
            return [chol] * count
        case "diag":
            return [np.diag(row) for row in chol]
        case _:
            return [np.eye(features) * scale for scale in chol]


def _squares(model: Any, x: Any, means: Any, _chol: Any) -> Any:
    turned = [(x - mean) @ factor for mean, factor in zip(means, _factors(model), strict=True)]
    return np.stack([(y * y).sum(1) for y in turned], axis=1)


def _squares_known(model: Any, row: Any) -> Any:
    turned = [(row - mean) @ factor for mean, factor in zip(model.means_, _factors(model), strict=True)]
    return np.array([(y * y).sum() for y in turned])
