"""Support vectors, and other models that are sums of kernels."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic
from entrepot.exporters.sklearn.blocks import chosen, kernel, voted
from entrepot.exporters.sklearn.columns import as_double, as_float
from entrepot.exporters.sklearn.converters.platt import pairwise_probabilities
from entrepot.exporters.sklearn.table import Results, converts


def _gram(model: Any, x: Any) -> Symbolic:
    if model.kernel == "precomputed":
        return as_double(x)[:, model.support_]
    vectors = model._BaseLibSVM__Xfit[model.support_] if callable(model.kernel) else model.support_vectors_
    return kernel(as_double(x), vectors, model.kernel, model._gamma, model.degree, model.coef0)


@converts("sklearn.SVR", "sklearn.NuSVR")
def regressor(model: Any, x: Any) -> Results:
    """A sum of kernels."""
    return {"predict": (_gram(model, x) @ model.dual_coef_.T)[:, 0] + model.intercept_[0]}


@converts("sklearn.OneClassSVM")
def one_class(model: Any, x: Any) -> Results:
    """Outliers by the sign of a sum of kernels."""
    scores = (_gram(model, x) @ model.dual_coef_.T)[:, 0] + model.intercept_[0]
    return {
        "predict": np.where(scores > 0, np.int64(1), np.int64(-1)),
        "decision_function": scores,
        "score_samples": scores + model.offset_,
    }


@converts("sklearn.BaseSVC")
def classifier(model: Any, x: Any) -> Results:
    """A score for each pair of classes, and votes; scores are of the later class, as scikit-learn turns them."""
    count = len(model.classes_)
    pairs = _gram(model, x) @ _pair_weights(model, count).T + model._intercept_
    ballots = _ballots(pairs, count)
    labels = chosen(model.classes_, ballots.argmax(1))
    if count == 2:
        scores = -pairs[:, 0]
    elif model.decision_function_shape == "ovr":
        scores = one_versus_rest(-pairs, count)
        labels = voted(model.classes_, scores) if model.break_ties else labels
    else:
        scores = pairs
    found = {"predict": labels, "decision_function": scores}
    if model.probability is True or len(getattr(model, "_probA", ())):
        found["predict_proba"] = pairwise_probabilities(pairs, model._probA, model._probB, count)
    return found


def _pair_weights(model: Any, count: int) -> np.ndarray[Any, Any]:
    """What each vector counts in each pair of classes: libsvm keeps one row of coefficients less than classes."""
    ends = np.cumsum([0, *model._n_support])
    weights = np.zeros((count * (count - 1) // 2, ends[-1]))
    for at, (i, j) in enumerate(combinations(range(count), 2)):
        weights[at, ends[i] : ends[i + 1]] = model._dual_coef_[j - 1, ends[i] : ends[i + 1]]
        weights[at, ends[j] : ends[j + 1]] = model._dual_coef_[i, ends[j] : ends[j + 1]]
    return weights


def _shared_out(count: int, first: float, second: float) -> np.ndarray[Any, Any]:
    """A row per pair of classes: what its first and its second class get."""
    table = np.zeros((count * (count - 1) // 2, count))
    for at, (i, j) in enumerate(combinations(range(count), 2)):
        table[at, i], table[at, j] = first, second
    return table


def _ballots(pairs: Symbolic, count: int) -> Symbolic:
    won = (pairs > 0).astype(pairs.dtype)
    return won @ _shared_out(count, 1, 0) + (1 - won) @ _shared_out(count, 0, 1)


def one_versus_rest(scores: Symbolic, count: int, second: Symbolic = None) -> Symbolic:
    """Votes of pairs, and a little for how sure they are; scores are of each pair's second class."""
    second = (scores >= 0).astype(np.float64) if second is None else second
    votes = second @ _shared_out(count, 0, 1) + (1 - second) @ _shared_out(count, 1, 0)
    sure = scores @ _shared_out(count, -1, 1)
    return votes + sure / (3 * (np.abs(sure) + 1))


@converts("sklearn.KernelRidge")
def kernel_ridge(model: Any, x: Any) -> Results:
    """A sum of kernels."""
    gram = kernel(as_float(x), model.X_fit_, model.kernel, model.gamma, model.degree, model.coef0)
    return {"predict": gram @ model.dual_coef_}


@converts("sklearn.Nystroem")
def nystroem(model: Any, x: Any) -> Results:
    """Kernels with some rows, made orthogonal."""
    gram = kernel(as_float(x), model.components_, model.kernel, **_given(model))
    return {"transform": gram @ model.normalization_.T}


def _given(model: Any) -> dict[str, Any]:
    given = {"gamma": model.gamma, "degree": model.degree, "coef0": model.coef0}
    defaults = {"gamma": None, "degree": 3, "coef0": 1}
    return {name: defaults[name] if value is None else value for name, value in given.items()}


@converts("sklearn.KernelPCA")
def kernel_pca(model: Any, x: Any) -> Results:
    """Principal components of kernels."""
    gram = kernel(as_float(x), model.X_fit_, model.kernel, model.gamma_, model.degree, model.coef0)
    centred = centred_kernel(model._centerer, gram)
    positive = np.flatnonzero(model.eigenvalues_)
    scaled = np.zeros_like(model.eigenvectors_)
    scaled[:, positive] = model.eigenvectors_[:, positive] / np.sqrt(model.eigenvalues_[positive])
    return {"transform": centred @ scaled}


@converts("sklearn.KernelCenterer")
def centerer(model: Any, x: Any) -> Results:
    """A kernel as if rows had mean 0."""
    return {"transform": centred_kernel(model, as_float(x))}


def centred_kernel(model: Any, gram: Symbolic) -> Symbolic:
    """The kernel, once its means are taken away."""
    means = gram.sum(1, keepdims=True) / len(model.K_fit_rows_)
    return gram - model.K_fit_rows_ - means + model.K_fit_all_
