"""What many estimators share: labels, links, distances, kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic, lifted
from entrepot.exporters.sklearn.columns import as_float, matrix
from entrepot.ir.errors import UnsupportedOpError

_UNROLLED = 64
"""Columns up to which distances are summed one by one, which is exact where two rows are equal."""


def chosen(classes: Any, at: Symbolic) -> Symbolic:
    """The classes at these positions."""
    return lifted(at.build, np.asarray(classes)).take(at, 0)


def voted(classes: Any, scores: Symbolic) -> Symbolic:
    """The class of the largest score in each row."""
    return chosen(classes, scores.argmax(1))


def binary_scores(scores: Symbolic) -> Symbolic:
    """Scores without the axis of the one class that they are about."""
    return scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores


def by_sign(classes: Any, scores: Symbolic) -> Symbolic:
    """The second class where a score is positive, or the class of the largest."""
    scores = binary_scores(scores)
    return chosen(classes, (scores > 0).astype(np.int64)) if scores.ndim == 1 else voted(classes, scores)


def outliers(samples: Symbolic, offset: Any) -> dict[str, Any]:
    """What detectors of outliers answer, given how usual each row is: 1, or -1 where that is below a limit."""
    scores = samples - offset
    predicted = np.where(scores < 0, np.int64(-1), np.int64(1))
    return {"predict": predicted, "decision_function": scores, "score_samples": samples}


def two_columns(positive: Symbolic) -> Symbolic:
    """Probabilities of both classes, given those of the second."""
    return np.stack([1 - positive, positive], axis=1)


def log_sum_exp(x: Symbolic, axis: int = 1, keepdims: bool = False) -> Symbolic:
    """The logarithm of summed exponentials."""
    most = x.max(axis, keepdims=True)
    most = np.where(np.isinf(most), 0.0, most)
    total = np.log(np.exp(x - most).sum(axis, keepdims=True)) + most
    return total if keepdims else total.op("Squeeze", [axis], shape=[d for n, d in enumerate(x.shape) if n != axis])


def softmax(x: Symbolic) -> Symbolic:
    """Exponentials as shares of their sum in each row."""
    grown = np.exp(x - x.max(1, keepdims=True))
    return grown / grown.sum(1, keepdims=True)


def sigmoid(x: Symbolic) -> Symbolic:
    """1 / (1 + exp(-x)), which keeps its precision on both sides."""
    decay = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, decay) / (1.0 + decay)


def shares(x: Symbolic) -> Symbolic:
    """Rows divided by their sums, where those are not 0."""
    total = x.sum(1, keepdims=True)
    return x / np.where(total == 0, 1.0, total)


def squared_distances(x: Any, y: Any) -> Symbolic:
    """Squared euclidean distances between rows, as scikit-learn computes them: by their products."""
    x, y = as_float(x), np.asarray(y)
    apart = (x * x).sum(1, keepdims=True) - 2 * (x @ y.T) + (y * y).sum(1)
    return np.maximum(apart, 0.0)


def euclidean(x: Any, y: Any) -> Symbolic:
    """Euclidean distances between rows."""
    return np.sqrt(squared_distances(x, y))


def summed_over_columns(x: Any, y: Any, term: Callable[[Any, Any], Any]) -> Symbolic:
    """For each pair of rows the sum of ``term`` of their elements; no array is larger than the result."""
    x, y = matrix(x), np.asarray(y)
    total = term(x[:, 0][:, None], y[:, 0])
    for at in range(1, y.shape[1]):
        total = total + term(x[:, at][:, None], y[:, at])
    return total


def distances(x: Any, y: Any, metric: str = "euclidean", p: float = 2, **given: Any) -> Symbolic:
    """Distances between rows in one of the usual metrics.

    Raises:
        UnsupportedOpError: It is another.
    """
    x, y, metric = _plainer(as_float(x), np.asarray(y, float), metric, p, given)
    if metric in ("euclidean", "l2", "sqeuclidean"):
        few = y.shape[1] <= _UNROLLED
        square = summed_over_columns(x, y, lambda a, b: (a - b) * (a - b)) if few else squared_distances(x, y)
        return square if metric == "sqeuclidean" else np.sqrt(square)
    if metric in ("manhattan", "cityblock", "l1"):
        return summed_over_columns(x, y, lambda a, b: np.abs(a - b))
    if metric == "chebyshev":
        return np.abs(x[:, None, :] - y).max(2)
    if metric == "minkowski":
        return summed_over_columns(x, y, lambda a, b: np.abs(a - b) ** float(p)) ** (1 / p)
    if metric in _TERMS:
        return _TERMS[metric](x, y)
    if metric == "cosine":
        return np.clip(1 - unit_rows(x) @ (y / np.linalg.norm(y, axis=1, keepdims=True)).T, 0.0, 2.0)
    raise UnsupportedOpError(f"distances by metric={metric!r} cannot be written", hint="fit it with another metric")


def _plainer(x: Any, y: Any, metric: str, p: float, given: Mapping[str, Any]) -> tuple[Any, Any, str]:
    """Rows changed so that a plainer metric tells the same distances."""
    if metric == "minkowski" and p in (1, 2):
        metric = "euclidean" if p == 2 else "manhattan"
    if metric in _SCALED:
        scale = _SCALED[metric](given)
        return x @ scale, y @ scale, "euclidean"
    if metric == "correlation":
        return x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True), "cosine"
    if given.get("w") is not None:
        weights = np.asarray(given["w"], float) ** (1.0 / p)
        return x * weights, y * weights, metric
    return x, y, metric


def _whitening(given: Mapping[str, Any]) -> Any:
    """A matrix after which distances are euclidean."""
    inverse = given.get("VI")
    return np.linalg.cholesky(np.linalg.inv(given["V"]) if inverse is None else inverse)


_SCALED: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "mahalanobis": _whitening,
    "seuclidean": lambda given: np.diag(1.0 / np.sqrt(given["V"])),
}
"""Metrics that are euclidean after rows are multiplied by a matrix."""


def _canberra(x: Any, y: Any) -> Symbolic:
    def term(a: Any, b: Any) -> Any:
        total = np.abs(a) + np.abs(b)
        return np.abs(a - b) / np.where(total == 0, 1.0, total)

    return summed_over_columns(x, y, term)


def _bray_curtis(x: Any, y: Any) -> Symbolic:
    total = summed_over_columns(x, y, lambda a, b: np.abs(a) + np.abs(b))
    return summed_over_columns(x, y, lambda a, b: np.abs(a - b)) / np.where(total == 0, 1.0, total)


def _hamming(x: Any, y: Any) -> Symbolic:
    return summed_over_columns(x, y, lambda a, b: (a != b).astype(np.float64)) / y.shape[1]


def _haversine(x: Any, y: Any) -> Symbolic:
    """The angle between points of a sphere, of their latitudes and longitudes."""
    (north, east), (up, along) = ((x[:, at][:, None] for at in (0, 1)), (y[:, at] for at in (0, 1)))
    half = np.sin((north - up) * 0.5) ** 2 + np.cos(north) * np.cos(up) * np.sin((east - along) * 0.5) ** 2
    return 2.0 * np.arcsin(np.sqrt(half))


def _with_gaps(x: Any, y: Any) -> Symbolic:
    """Euclidean, of the columns that both rows have, as if the others were as far apart."""

    def term(a: Any, b: Any) -> Any:
        apart = np.where(np.isnan(a) | np.isnan(b), 0.0, a - b)
        return apart * apart

    both = summed_over_columns(x, y, lambda a, b: (~(np.isnan(a) | np.isnan(b))).astype(np.float64))
    return np.sqrt(np.where(both == 0, np.nan, summed_over_columns(x, y, term) / np.maximum(both, 1.0) * y.shape[1]))


def _of_truths(share: Callable[[Any, Any, int], Any]) -> Callable[[Any, Any], Symbolic]:
    """A metric of how many columns are true in both rows and how many in one, of a number of columns."""

    def metric(x: Any, y: Any) -> Symbolic:
        x, y = (x != 0).astype(np.float64), (y != 0).astype(np.float64)
        both = x @ y.T
        return share(both, x.sum(1, keepdims=True) + y.sum(1) - 2.0 * both, y.shape[1])

    return metric


_TERMS: dict[str, Callable[[Any, Any], Symbolic]] = {
    "canberra": _canberra,
    "braycurtis": _bray_curtis,
    "hamming": _hamming,
    "haversine": _haversine,
    "nan_euclidean": _with_gaps,
    "jaccard": _of_truths(lambda both, one, _: one / np.where(both + one == 0, 1.0, both + one)),
    "dice": _of_truths(lambda both, one, _: one / (2.0 * both + one)),
    "rogerstanimoto": _of_truths(lambda both, one, count: 2.0 * one / (count + one)),
    "russellrao": _of_truths(lambda both, one, count: (count - both) / count),
    "sokalsneath": _of_truths(lambda both, one, _: one / (0.5 * both + one)),
}


def unit_rows(x: Symbolic) -> Symbolic:
    """Rows divided by their length, where that is not 0."""
    length = np.sqrt((x * x).sum(1, keepdims=True))
    return x / np.where(length == 0, 1.0, length)


def kernel(x: Any, y: Any, name: Any, gamma: Any = None, degree: float = 3, coef0: float = 1, **_: Any) -> Symbolic:
    """What ``pairwise_kernels`` computes of rows; a kernel that is a function is run.

    Raises:
        UnsupportedOpError: There is no such kernel here.
    """
    x = as_float(x)
    if name == "precomputed":
        return x
    y = np.asarray(y)
    if callable(name):
        return name(x, y)
    if name not in _KERNELS:
        raise UnsupportedOpError(f"kernel={name!r} cannot be written", hint=f"there are {', '.join(_KERNELS)}")
    gamma = 1.0 / y.shape[1] if gamma is None else gamma
    return _KERNELS[name](x, y, gamma, degree, coef0)


def _chi2(x: Any, y: Any) -> Symbolic:
    def term(a: Any, b: Any) -> Any:
        total = a + b
        return np.where(total == 0, 0.0, (a - b) * (a - b) / np.where(total == 0, 1.0, total))

    return -summed_over_columns(x, y, term)


_KERNELS: dict[str, Callable[..., Symbolic]] = {
    "linear": lambda x, y, *_: x @ y.T,
    "poly": lambda x, y, gamma, degree, coef0: _power(x @ y.T * gamma + coef0, degree),
    "polynomial": lambda x, y, gamma, degree, coef0: _power(x @ y.T * gamma + coef0, degree),
    "rbf": lambda x, y, gamma, *_: np.exp(squared_distances(x, y) * -gamma),
    "sigmoid": lambda x, y, gamma, degree, coef0: np.tanh(x @ y.T * gamma + coef0),
    "laplacian": lambda x, y, gamma, *_: np.exp(distances(x, y, "manhattan") * -gamma),
    "cosine": lambda x, y, *_: unit_rows(x) @ (y / np.linalg.norm(y, axis=1, keepdims=True)).T,
    "chi2": lambda x, y, gamma, *_: np.exp(_chi2(x, y) * (1.0 if gamma is None else gamma)),
    "additive_chi2": lambda x, y, *_: _chi2(x, y),
}


def _power(x: Symbolic, degree: float) -> Symbolic:
    """By multiplication where the exponent is small and whole, as a power of a negative number has to be."""
    if degree == int(degree) and 1 <= degree <= 8:
        total = x
        for _ in range(int(degree) - 1):
            total = total * x
        return total
    return x ** float(degree)
