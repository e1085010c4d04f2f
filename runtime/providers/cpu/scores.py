"""What becomes of the scores of ai.onnx.ml's classifiers and regressors.

The specification names the transforms and says little more; where it is silent, this does what onnxruntime does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError

Array: TypeAlias = np.ndarray[Any, Any]

_TINY = 1e-7
"""Scores up to here are zero to SOFTMAX_ZERO."""


def transformed(scores: Array, how: str) -> Array:
    """Rows of scores after ``post_transform``, whose name is as of version 1.

    Raises:
        InputError: There is no such transform.
    """
    if how not in _TRANSFORMS:
        raise InputError(f"post_transform='{how}' is not one of {', '.join(_TRANSFORMS)}")
    return _TRANSFORMS[how](scores)


def logistic(x: Array) -> Array:
    """``1 / (1 + exp(-x))``, without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def named(indices: Array, labels: Sequence[Any]) -> Array:
    """The labels at these places, integers or strings."""
    return np.array(labels, object if labels and isinstance(labels[0], str) else np.int64)[indices]


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    return powers / powers.sum(-1, keepdims=True)


def _softmax_zero(scores: Array) -> Array:
    """A score of zero stays zero."""
    most = scores.max(-1, keepdims=True, initial=-np.inf)
    small = np.abs(scores) <= _TINY
    powers = np.where(small, scores * np.exp(-most), np.exp(scores - most))
    total = np.where(small, 0, powers).sum(-1, keepdims=True)
    return powers / np.where(total == 0, 1, total)


def _probit(scores: Array) -> Array:
    """The quantile of a normal distribution by Winitzki's formula, which all runtimes use."""
    x = 2 * scores - 1
    log = np.log((1 - x) * (1 + x))
    half = 2 / (np.pi * 0.147) + 0.5 * log
    return np.sqrt(2) * np.copysign(np.sqrt(np.sqrt(half * half - log / 0.147) - half), x)


_TRANSFORMS: dict[str, Callable[[Array], Array]] = {
    "NONE": lambda scores: scores,
    "SOFTMAX": _softmax,
    "LOGISTIC": logistic,
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}
