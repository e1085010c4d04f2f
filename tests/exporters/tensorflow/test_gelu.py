"""Gelu as TensorFlow spells it out: one operator where it is that, the formula where it is not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import entrepot as ep

X = np.array([[0.0, -0.0, 1.0, -1.0], [3.0, -3.0, 1e4, -1e4], [1e-30, -6.0, np.inf, -5.5]], np.float32)
ROOT = math.sqrt(2.0)

GELU: dict[str, Callable[[Any], Any]] = {
    "erfc": tf.nn.gelu,
    "of a product": lambda x: tf.nn.gelu(x * 3.0 * x),
    "erf": lambda x: 0.5 * x * (1.0 + tf.math.erf(x / ROOT)),
    "half of the share": lambda x: x * (0.5 * (tf.math.erf(x * (1 / ROOT)) + 1.0)),
    "half of all": lambda x: 0.5 * (x * tf.math.erfc(-x / ROOT)),
    "float16": lambda x: tf.nn.gelu(tf.cast(x, tf.float16)),
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "a quarter": lambda x: 0.25 * x * (1.0 + tf.math.erf(x / ROOT)),
    "another factor": lambda x: 0.5 * (x + 1.0) * tf.math.erfc(-x / ROOT),
    "not turned": lambda x: 0.5 * x * tf.math.erfc(x / ROOT),
    "another scale": lambda x: 0.5 * x * (1.0 + tf.math.erf(x / 2.0)),
    "two more": lambda x: 0.5 * x * (2.0 + tf.math.erf(x / ROOT)),
    "float64": lambda x: tf.nn.gelu(tf.cast(x, tf.float64)),
    "squared": lambda x: 0.5 * x * x * tf.math.erfc(-x / ROOT),
}


def kinds(function: Callable[[Any], Any]) -> set[str]:
    """The operators of the verified export."""
    model = ep.export(tf.function(function), X, progress=False)
    results = ep.Session(model).run({model.inputs[0].name: X})
    with np.errstate(all="ignore"):
        expected = np.asarray(function(tf.constant(X)))
    eps = float(np.finfo(expected.dtype).eps)
    np.testing.assert_allclose(next(iter(results.values())), expected, rtol=8 * eps, atol=8 * eps)
    return {node.op_type for node in model.ir.graph.all_nodes()}


@pytest.mark.parametrize("function", GELU.values(), ids=GELU)
def test_it_is_one_operator_however_it_is_spelled(function: Callable[[Any], Any]) -> None:
    found = kinds(function)
    assert "Gelu" in found
    assert found <= {"Gelu", "Mul", "Cast"}


@pytest.mark.parametrize("function", OTHERS.values(), ids=OTHERS)
def test_what_only_looks_like_it_is_computed_as_it_says(function: Callable[[Any], Any]) -> None:
    assert "Gelu" not in kinds(function)
