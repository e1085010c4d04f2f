"""Embeddings of new rows by those that are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic, lifted
from entrepot.exporters.sklearn.columns import as_float
from entrepot.exporters.sklearn.converters.kernels import kernel_pca
from entrepot.exporters.sklearn.converters.neighbours import apart, nearest
from entrepot.exporters.sklearn.table import Results, converts


@converts("sklearn.Isomap")
def isomap(model: Any, x: Any) -> Results:
    """By the shortest ways through neighbours."""
    known = model.nbrs_
    if model.n_neighbors is not None:
        away, places = nearest(known, x, model.n_neighbors)
        ways = (lifted(away.build, model.dist_matrix_).take(places, 0) + away[:, :, None]).min(1)
    else:
        away = apart(known, x)
        reached = np.where(away <= known.radius, away, np.inf)
        ways = (reached[:, :, None] + model.dist_matrix_).min(1)
    return {"transform": kernel_pca(model.kernel_pca_, ways * ways * -0.5)["transform"]}


@converts("sklearn.LocallyLinearEmbedding")
def locally_linear(model: Any, x: Any) -> Results:
    """The weights that make a row of its neighbours make its place of theirs."""
    x = as_float(x)
    _, places = nearest(model.nbrs_, x, model.n_neighbors)
    away = lifted(x.build, np.asarray(model.nbrs_._fit_X, x.dtype)).take(places, 0) - x[:, None, :]
    gram = away @ away.transpose(0, 2, 1)
    unit = np.eye(model.n_neighbors, dtype=x.dtype)
    trace = (gram * unit).sum(2).sum(1)
    extra = np.where(trace > 0, model.reg * trace, model.reg)
    weights = solved(gram + extra[:, None, None] * unit, x.rows(np.ones(model.n_neighbors, x.dtype)))
    weights = weights / weights.sum(1, keepdims=True)
    return {"transform": (lifted(x.build, model.embedding_).take(places, 0) * weights[:, :, None]).sum(1)}


def solved(matrices: Symbolic, right: Symbolic) -> Symbolic:
    """Solutions of small positive definite systems, one for each row, by elimination that is written out."""
    size = right.shape[1]
    rows = [np.concatenate([matrices[:, at], right[:, at][:, None]], axis=1) for at in range(size)]
    for pivot in range(size):
        rows[pivot] = rows[pivot] / rows[pivot][:, pivot : pivot + 1]
        for at in range(size):
            if at != pivot:
                rows[at] = rows[at] - rows[at][:, pivot : pivot + 1] * rows[pivot]
    return np.stack([row[:, size] for row in rows], axis=1)
