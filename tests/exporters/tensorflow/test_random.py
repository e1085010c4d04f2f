"""Random numbers that no result depends on: dropout whose rate is 0 unless something else is fed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import entrepot as ep

v1 = tf.compat.v1


def test_dropout_that_is_off_by_default_is_exported(tmp_path: Path) -> None:
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4])
        rate = v1.placeholder_with_default(0.0, [])
        y = v1.nn.dropout(tf.nn.relu(x) * v1.get_variable("scale", [4]), rate=rate)
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, path, {"x": x}, {"y": y})
        given = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
        expected = session.run(y, {x: given})
    (found,) = ep.Session(ep.export(path)).run({"x": given}).values()
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_branch_for_training_may_draw_and_shuffle() -> None:
    def network(x: tf.Tensor) -> tf.Tensor:
        def training() -> tf.Tensor:
            noise = tf.random.normal(tf.shape(x)) + tf.cast(tf.random.uniform([4], 0, 3, tf.int32), tf.float32)
            return tf.random.shuffle(x) + noise

        return tf.cond(tf.reduce_sum(x) * 0 > 1, training, lambda: x * 2)

    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    (found,) = ep.Session(ep.export(tf.function(network), x)).run({"x": x}).values()
    np.testing.assert_array_equal(found, x * 2)


def test_results_that_are_random_are_refused() -> None:
    with pytest.raises(ep.ConversionError, match="two calls with the same inputs differ"):
        ep.export(tf.function(lambda x: x + tf.random.uniform(tf.shape(x))), tf.ones((2, 3)))
