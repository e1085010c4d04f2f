"""What classical models round: sums of features and of leaves in single precision, kernels, and what follows them."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_CALLS = 8
"""Units of an elementary function and of a division after it."""


def linear(use: Any) -> list[Any]:
    """A sum of products for each row, and a transform that does not enlarge its error."""
    x = np.abs(np.atleast_2d(use.inputs[0]))
    bias = np.abs(use.attributes.get("intercepts") or [0.0])
    weights = np.abs(np.reshape(use.attributes["coefficients"], (len(bias), -1)))
    sums = (x.shape[1] + 2) * (x @ weights.T + bias)
    return _scored(use, sums)


def trees(use: Any) -> list[Any]:
    """A sum of as many leaves as there are trees."""
    names = ("leaf_weights", "target_weights", "target_weights_as_tensor", "class_weights", "class_weights_as_tensor")
    weights = np.abs(np.concatenate([np.ravel(_given(use, name)) for name in names]))
    base = np.abs(np.concatenate([np.ravel(_given(use, name)) for name in ("base_values", "base_values_as_tensor")]))
    roots = len(set(_given(use, "nodes_treeids"))) or len(_given(use, "tree_roots"))
    return _scored(use, (roots + 2) * (roots * weights.max() + base.max(initial=0)))


def _given(use: Any, name: str) -> Any:
    value = use.attributes.get(name)
    return () if value is None else value


def normalised(use: Any) -> list[Any]:
    """A norm, which is a positive sum, and a division."""
    return [(use.inputs[0].shape[-1] + 4) * np.abs(use.outputs[0])]


def machines(use: Any) -> list[Any]:
    """A sum of kernels, each as exact as the sum it is a function of; probabilities change less than their scores."""
    given, x = use.attributes, np.atleast_2d(use.inputs[0])
    weights = np.abs(given["coefficients"])
    gamma, offset, degree = given.get("kernel_params") or (0.0, 0.0, 0.0)
    vectors = np.reshape(given["support_vectors"], (-1, x.shape[1]))
    dot = np.abs(x) @ np.abs(vectors).T
    inner = (x.shape[1] + 2) * (gamma * dot + abs(offset))
    far = gamma * ((x[:, None] - vectors) ** 2).sum(2)
    kind = given.get("kernel_type", b"LINEAR")
    rounded = {
        "LINEAR": (x.shape[1] + 2) * dot,
        "POLY": (degree * inner + _CALLS) * (gamma * dot + abs(offset)) ** max(degree - 1, 1),
        "RBF": ((x.shape[1] + 3) * far + _CALLS) * np.exp(-far),
        "SIGMOID": inner + _CALLS,
    }[kind.decode() if isinstance(kind, bytes) else kind]
    values = {"LINEAR": dot, "POLY": (gamma * dot + abs(offset)) ** degree}.get(str(kind), np.ones_like(dot))
    slope = max(1.0, *np.abs(given.get("prob_a") or [1.0]))
    sums = slope * ((rounded + (len(vectors) + 1) * values) @ weights[:, None] + np.abs(given["rho"]).max() + 1)
    return _scored(use, sums)


def _scored(use: Any, sums: Any) -> list[Any]:
    """For the last output, the scores; labels are exact."""
    scores = use.outputs[-1]
    slack = np.broadcast_to(np.max(sums, axis=-1, keepdims=True), np.shape(scores)) + _CALLS * np.abs(
        np.nan_to_num(scores)
    )
    return [0.0] * (len(use.outputs) - 1) + [slack]
