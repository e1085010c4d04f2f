"""Weighted sums of features, and kernels over support vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.runtime.providers.cpu.machines import Machine
from entrepot.runtime.providers.cpu.scores import Array, logistic, named, transformed
from entrepot.runtime.providers.cpu.table import native

ML = "ai.onnx.ml"


@native("LinearRegressor", 1, domain=ML)
def linear_regressor(
    X: Array, *, coefficients: Any = None, intercepts: Any = None, post_transform: str = "NONE", targets: int = 1
) -> Array:
    """``X @ coefficients + intercepts``, for each target."""
    scores = _sums(X, coefficients, intercepts, targets)
    transform = "NONE" if targets == 1 and post_transform != "PROBIT" else post_transform  # as onnxruntime
    return transformed(scores, transform).astype(np.float32)


@native("LinearClassifier", 1, domain=ML)
def linear_classifier(
    X: Array, *, classlabels_ints: Any = None, classlabels_strings: Any = None, coefficients: Any,
    intercepts: Any = None, multi_class: int = 0, post_transform: str = "NONE",
) -> tuple[Array, Array]:  # fmt: skip
    """The label of the class with the largest sum, and the sums; of two classes, one sum may stand for both."""
    labels = list(classlabels_strings or classlabels_ints or ())
    count = len(intercepts) if intercepts else max(len(labels), 1)
    sums = _sums(X, coefficients, intercepts, count)
    if count > 1:
        return named(sums.argmax(1), labels), transformed(sums, post_transform).astype(np.float32)
    index = (sums[:, 0] > 0).astype(np.intp)
    if len(labels) != 2:
        return named(index, labels or [0, 1]), transformed(sums, post_transform).astype(np.float32)
    pair = np.concatenate([-sums, sums] if post_transform == "LOGISTIC" else [1 - sums, sums], 1)
    return named(index, labels), (logistic(pair) if post_transform == "LOGISTIC" else pair).astype(np.float32)


def _sums(X: Array, coefficients: Any, intercepts: Any, count: int) -> Array:
    weights = np.array(coefficients, np.float32).reshape(count, -1).astype(np.float64)
    bias = np.array(intercepts or [0.0] * count, np.float32)
    return np.asarray(np.atleast_2d(X), np.float64) @ weights.T + bias


@native("SVMRegressor", 1, domain=ML)
def svm_regressor(
    X: Array, *, coefficients: Any = None, kernel_params: Any = None, kernel_type: str = "LINEAR", n_supports: int = 0,
    one_class: int = 0, post_transform: str = "NONE", rho: Any = None, support_vectors: Any = None,
) -> Array:  # fmt: skip
    """A sum of kernels; ``one_class`` asks for its sign."""
    machine = Machine.of(kernel_type, kernel_params, support_vectors, n_supports or 1)
    weights = np.array(coefficients, np.float32).astype(np.float64)
    scores = machine.kernels(X) @ weights[:, None] if n_supports else machine.products(X, weights[None])
    scores = scores + np.float32(rho[0])
    return (np.where(scores > 0, 1, -1) if one_class else scores).astype(np.float32)
