"""Probabilities of classes from those of pairs, as libsvm finds them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic, lifted
from entrepot.exporters.sklearn.blocks import sigmoid
from entrepot.exporters.sklearn.loops import repeated

_LEAST = 1e-7


def pairwise_probabilities(pairs: Symbolic, slopes: Any, offsets: Any, count: int) -> Symbolic:
    """Wu, Lin and Weng (2004): an iteration over all classes that stops for each row by itself.

    The loop of the graph goes on as long as any row needs it; rows that are done stay as they are.
    """
    first = np.clip(sigmoid(-(pairs * np.asarray(slopes) + np.asarray(offsets))), _LEAST, 1 - _LEAST)
    r = _table(first, count)
    square = r * r
    diagonal = square.sum(1)  # of column t: the sum over j of r[j, t] ** 2
    q = -(r.transpose(0, 2, 1) * r) + diagonal[:, :, None] * np.eye(count)
    start = pairs.rows(np.full(count, 1 / count))
    [found] = repeated(max(100, count), [start], lambda p: _stepped(p, q, count))
    return found


def _stepped(p: Symbolic, q: Symbolic, count: int) -> tuple[list[Symbolic], Symbolic]:
    moved, is_open = _round(p, q, count, 0.005 / count)
    return [moved], is_open.any()


def _table(first: Symbolic, count: int) -> Symbolic:
    """``r[row, i, j]``: how probable class i is among i and j."""
    columns: dict[tuple[int, int], Any] = {}
    for at, pair in enumerate(combinations(range(count), 2)):
        columns[pair], columns[pair[::-1]] = first[:, at], 1 - first[:, at]
    zero = first[:, 0] * 0.0
    flat = [columns.get((i, j), zero) for i in range(count) for j in range(count)]
    return np.stack(flat, axis=1).reshape(-1, count, count)


def _round(p: Symbolic, q: Symbolic, count: int, enough: float) -> tuple[Symbolic, Symbolic]:
    qp = (q * p[:, None, :]).sum(2)
    pqp = (p * qp).sum(1, keepdims=True)
    is_open = np.abs(qp - pqp).max(1, keepdims=True) >= enough
    new = p
    for t in range(count):
        step = (pqp - qp[:, t : t + 1]) / q[:, t, t][:, None]
        unit = lifted(p.build, np.eye(count)[t])
        new = (new + step * unit) / (1 + step)
        pqp = (pqp + step * (step * q[:, t, t][:, None] + 2 * qp[:, t : t + 1])) / (1 + step) / (1 + step)
        qp = (qp + step * q[:, t, :]) / (1 + step)
    return np.where(is_open, new, p), is_open
