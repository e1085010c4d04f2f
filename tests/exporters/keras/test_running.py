"""A network of many layers is run as one function."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from entrepot.exporters.keras.arrays import numpy_of
from entrepot.exporters.keras.running import compiled

OPTIONS = tf.config.optimizer.get_experimental_options


def network(depth: int) -> keras.Model:
    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input((4,)), *[keras.layers.Dense(4, activation="tanh") for _ in range(depth)]])


def test_a_deep_network_runs_python_once_and_returns_what_calls_return() -> None:
    model, counted, before = network(120), [], OPTIONS()

    def call(arrays):
        counted.append(arrays)
        return model(arrays[0], training=False)

    batches = [np.random.default_rng(rows).standard_normal((rows, 4), np.float32) for rows in (2, 1, 5)]
    run = compiled(model, call, batches[:1])
    found = [numpy_of(run([each])) for each in batches]
    assert len(counted) == 1
    for array, given in zip(found, batches, strict=True):
        np.testing.assert_array_equal(array, numpy_of(model(given)))
    assert OPTIONS() == before | {"disable_meta_optimizer": False}


def test_a_short_network_is_called() -> None:
    assert compiled(network(3), print, [np.zeros((1, 4), np.float32)]) is print
