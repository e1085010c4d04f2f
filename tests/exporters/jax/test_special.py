"""Special functions far from where they are usually asked for, by SciPy's values."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import scipy.special

import entrepot as ep

A = np.array([[1e-3, 0.1, 1.0], [50.0, 200.0, 1e4], [1e6, 2.0, 5.0]], np.float32)
X = np.array([[1e-3, 2.0, 1.0], [40.0, 210.0, 1.01e4], [1.001e6, 0.0, np.inf]], np.float32)


@pytest.mark.parametrize(
    ("function", "exact"),
    [(jax.lax.igamma, scipy.special.gammainc), (jax.lax.igammac, scipy.special.gammaincc)],
    ids=["lower", "upper"],
)
def test_incomplete_gamma_needs_no_loop_and_is_right_for_large_numbers(function, exact):
    model = ep.export(function, (A[:2], X[:2]), progress=False)
    feeds = dict(zip((spec.name for spec in model.inputs), (A, X), strict=True))
    (found,) = ep.Session(model, providers=["cpu"]).run(feeds).values()
    np.testing.assert_allclose(found, exact(A.astype(np.float64), X.astype(np.float64)), rtol=1e-5)
    assert not any(node.op_type == "Loop" for node in model.ir.graph)
