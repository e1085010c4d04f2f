"""Support vector machines: kernels over support vectors, votes between pairs of classes, and their probabilities."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.providers.cpu.scores import Array

_ROUNDS = 100
"""Steps after which libsvm, and whoever follows it, takes probabilities as they are."""

_LEAST = 1e-7
"""The least probability of one class of a pair."""


@dataclass(frozen=True)
class Machine:
    """A kernel and the vectors it compares with.

    Attributes:
        kind: ``LINEAR``, ``POLY``, ``RBF`` or ``SIGMOID``.
        gamma: The first of ``kernel_params``.
        offset: The second.
        degree: The third.
        vectors: ``[supports, features]``.
    """

    kind: str
    gamma: float
    offset: float
    degree: float
    vectors: Array

    @classmethod
    def of(cls, kind: str, params: Sequence[float] | None, vectors: Sequence[float] | None, supports: int) -> Machine:
        """As attributes say it."""
        gamma, offset, degree = np.array(params or (0.0, 0.0, 0.0), np.float32).tolist()
        held = np.array(vectors or (), np.float32).astype(np.float64)
        return cls(kind, gamma, offset, degree, held.reshape(supports, -1) if held.size else held.reshape(0, 0))

    def kernels(self, X: Array) -> Array:
        """The kernel of each row with each support vector."""
        return self.products(X, self.vectors)

    def products(self, X: Array, vectors: Array) -> Array:
        """The kernel of each row of one with each of the other."""
        x = np.atleast_2d(X).astype(np.float64)
        if self.kind == "RBF":
            return np.exp(-self.gamma * ((x[:, None] - vectors[None]) ** 2).sum(2))
        dot = x @ vectors.T
        if self.kind == "LINEAR":
            return dot
        if self.kind == "POLY":
            return (self.gamma * dot + self.offset) ** self.degree
        if self.kind == "SIGMOID":
            return np.tanh(self.gamma * dot + self.offset)
        raise InputError(f"kernel_type='{self.kind}' is not LINEAR, POLY, RBF or SIGMOID")


def duels(kernels: Array, coefficients: Array, per_class: Sequence[int], rho: Array) -> tuple[Array, Array]:
    """The score of each pair of classes, in favour of the first, and how many pairs each class wins."""
    ends = np.cumsum(per_class)
    parts = [slice(end - size, end) for end, size in zip(ends, per_class, strict=True)]
    count = len(per_class)
    scores, votes = np.empty((len(kernels), len(rho))), np.zeros((len(kernels), count), np.intp)
    for at, (i, j) in enumerate(itertools.combinations(range(count), 2)):
        score = kernels[:, parts[i]] @ coefficients[j - 1, parts[i]] + kernels[:, parts[j]] @ coefficients[i, parts[j]]
        scores[:, at] = score + rho[at]
        votes[:, i] += scores[:, at] > 0
        votes[:, j] += scores[:, at] <= 0
    return scores, votes


def coupled(scores: Array, a: Array, b: Array, count: int) -> Array:
    """Probabilities of classes from those of pairs, which Platt's sigmoid gives; by Wu, Lin and Weng, as in libsvm."""
    with np.errstate(over="ignore"):
        first = np.clip(1 / (1 + np.exp(scores * a + b)), _LEAST, 1 - _LEAST)
    pairs = np.zeros((len(scores), count, count))
    for at, (i, j) in enumerate(itertools.combinations(range(count), 2)):
        pairs[:, i, j], pairs[:, j, i] = first[:, at], 1 - first[:, at]
    return np.array([_classes(each) for each in pairs]).reshape(len(scores), count)


def _classes(pairs: Array) -> Array:
    count = len(pairs)
    Q: Any = -(pairs.T * pairs)
    np.fill_diagonal(Q, (pairs.T**2).sum(1))
    p = np.full(count, 1 / count)
    for _ in range(_ROUNDS):
        Qp = Q @ p
        total = p @ Qp
        if np.abs(Qp - total).max() < 0.005 / count:
            break
        for t in range(count):
            change = (total - Qp[t]) / Q[t, t]
            p[t] += change
            total = (total + change * (change * Q[t, t] + 2 * Qp[t])) / (1 + change) ** 2
            Qp = (Qp + change * Q[t]) / (1 + change)
            p /= 1 + change
    return p
