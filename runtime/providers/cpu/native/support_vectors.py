"""Classifiers by support vectors, as onnxruntime decides where the specification is silent."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.runtime.providers.cpu.machines import Machine, coupled, duels
from entrepot.runtime.providers.cpu.scores import Array, logistic, named, transformed
from entrepot.runtime.providers.cpu.table import native


@native("SVMClassifier", 1, domain="ai.onnx.ml")
def svm_classifier(
    X: Array, *, classlabels_ints: Any = None, classlabels_strings: Any = None, coefficients: Any = None,
    kernel_params: Any = None, kernel_type: str = "LINEAR", post_transform: str = "NONE", prob_a: Any = None,
    prob_b: Any = None, rho: Any = None, support_vectors: Any = None, vectors_per_class: Any = None,
) -> tuple[Array, Array]:  # fmt: skip
    """The class that wins most duels; probabilities where their parameters are given, the duels' scores otherwise."""
    labels = list(classlabels_strings or classlabels_ints or ())
    weights = np.array(coefficients, np.float32).astype(np.float64)
    if not vectors_per_class:
        machine = Machine.of("LINEAR", kernel_params, (), 1)
        scores = machine.products(X, weights.reshape(len(labels), -1)) + np.float32(rho[0])
        return named(scores.argmax(1), labels), transformed(scores, post_transform).astype(np.float32)
    machine = Machine.of(kernel_type, kernel_params, support_vectors, sum(vectors_per_class))
    weights = weights.reshape(len(vectors_per_class) - 1, -1)
    scores, votes = duels(machine.kernels(X), weights, vectors_per_class, np.array(rho, np.float32))
    index = votes.argmax(1)
    if prob_a:
        chances = coupled(scores, np.array(prob_a, np.float32), np.array(prob_b, np.float32), len(vectors_per_class))
        return named(index, labels), transformed(chances, post_transform).astype(np.float32)
    if len(rho) == 1:
        return named(index, labels), _pair(scores[:, 0], post_transform).astype(np.float32)
    return named(index, labels), transformed(scores, post_transform).astype(np.float32)


def _pair(score: Array, how: str) -> Array:
    if how == "LOGISTIC":
        return logistic(np.stack([-score, score], 1))
    if how == "PROBIT":
        return transformed(score[:, None], how)
    return np.stack([-score if how == "NONE" else 1 - score, score], 1)
