"""Ragged tensors whose parts are inputs: their sizes vary together, and nothing reads beyond its memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import entrepot as ep

E = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)


def _rows(values: Any, splits: Any) -> tf.RaggedTensor:
    return tf.RaggedTensor.from_row_splits(values, splits, validate=False)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "embedded and padded": lambda v, s: _rows(tf.gather(E, v), s).to_tensor(),
    "cut": lambda v, s: _rows(v, s).to_tensor(-1, shape=[None, 2]),
    "taken": lambda v, s: tf.gather(_rows(v, s), [1, 0, 1]).to_tensor(),
    "joined": lambda v, s: tf.concat([_rows(v, s), _rows(v, s)], axis=1).to_tensor(),
    "sparse": lambda v, s: tf.sparse.to_dense(_rows(v, s).to_sparse()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_splits_vary_together(name: str) -> None:
    function = FUNCTIONS[name]
    model = ep.export(function, (np.array([4, 5, 6, 7, 8, 9]), np.array([0, 2, 3, 6])))
    for values, splits in (([1, 2, 3, 9, 11, 12, 3, 1], [0, 1, 5, 5, 8]), ([3], [0, 0, 1])):
        given = dict(zip([spec.name for spec in model.inputs], map(np.array, (values, splits)), strict=True))
        (result,) = ep.Session(model).run(given).values()
        np.testing.assert_array_equal(result, function(*given.values()))


def test_a_gradient_of_a_graph_is_exported_although_no_eager_call_takes_it() -> None:
    @tf.function
    def slope(x: tf.Tensor) -> tf.Tensor:
        return tf.gradients(tf.sin(x) * x, x)[0]

    x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
    model = ep.export(slope, x)
    (result,) = ep.Session(model).run({model.inputs[0].name: x}).values()
    np.testing.assert_allclose(result, np.cos(x) * x + np.sin(x), rtol=1e-5, atol=1e-6)
