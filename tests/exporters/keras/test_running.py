"""A network of many layers is run as one function."""

from __future__ import annotations

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

import entrepot as ep
from entrepot.exporters.keras.arrays import numpy_of
from entrepot.exporters.keras.running import compiled
from entrepot.exporters.keras.source import KerasSource

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


@pytest.mark.parametrize(("depth", "operation", "runs"), [(2, False, 1), (2, True, 2), (120, True, 2)])
def test_a_batch_of_one_that_a_model_leaves_open_is_tried_once_if_at_all(depth, operation, runs, monkeypatch) -> None:
    model, counted = network(depth), []
    if operation:
        model = keras.Model(model.inputs, model.outputs[0] + 1)
    run = KerasSource.__call__

    def counting(source, arrays):
        counted.append(0 if source._settled is not None and arrays[0].shape == (1, 4) else 1)
        return run(source, arrays)

    monkeypatch.setattr(KerasSource, "__call__", counting)
    exported = ep.export(model, np.ones((1, 4), np.float32), verify=False)
    assert sum(counted) == runs
    assert str(exported.inputs[0].shape) == "('batch', 4)"
    assert ep.verify(model, exported, np.ones((1, 4), np.float32)).ok


def test_a_deep_network_says_what_is_wrong_with_a_sample_as_a_short_one_does() -> None:
    said = []
    for depth in (3, 120):
        with pytest.raises(ep.InputError, match="does not take the sample") as error:
            ep.export(network(depth), np.ones((1, 5), np.float32))
        said.append(re.sub(r"(sequential|dense)\S*", "", error.value.message))
    assert said[0] == said[1]


def test_a_transform_of_no_length_does_not_end_the_process() -> None:
    x = keras.Input((None,))
    model = ep.export(keras.Model(x, keras.ops.irfft(keras.ops.rfft(x))))
    assert model.report
