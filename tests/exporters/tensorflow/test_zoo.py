"""The zoo's models of TensorFlow are exported, every axis that they name varies, and other sizes give the same."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import entrepot as ep
from entrepot import models_zoo
from entrepot.models_zoo.tensorflow.weights import tokens
from entrepot.parity.compare import compare

OPSETS = {"cnn": 13, "transformer": 17, "graph_network": 17, "mixer": 13}


@pytest.mark.parametrize("name", models_zoo.names("tensorflow"))
def test_a_model_is_exported_with_its_axes(name):
    zoo = models_zoo.build(name, "tensorflow")
    model = ep.export(zoo.module, zoo.sample, progress=False, opset=OPSETS.get(name))
    assert model.report
    varying = {
        f"{spec.name}.{at}" for spec in model.inputs for at, dim in enumerate(spec.shape) if isinstance(dim, str)
    }
    assert varying >= zoo.dynamic
    arrays = zoo.samples[-1]
    expected = [each.numpy() for each in tf.nest.flatten(zoo.module(*map(tf.constant, arrays)))]
    found = ep.Session(model).run(dict(zip([spec.name for spec in model.inputs], arrays, strict=True)))
    assert compare(dict(zip(found, expected, strict=True)), found).ok


def test_an_encoder_from_a_file_is_trained_before_it_is_exported(tmp_path):
    tuned = models_zoo.build("tuned_encoder", "tensorflow").module
    words, labels = tokens(32, 6, seed=2), tokens(32, 6, seed=2)[:, 0] % 3
    assert (np.argmax(tuned(words, tf.ones_like(words)), 1) == labels).mean() > 0.8
    served = tf.function(tuned.__call__, input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2)
    tf.saved_model.save(tuned, str(tmp_path / "tuned"), signatures={"serving_default": served})
    model = ep.export(tmp_path / "tuned", progress=False)
    (found,) = ep.Session(model).run({"words": words, "mask": np.ones_like(words)}).values()
    np.testing.assert_allclose(found, tuned(words, tf.ones_like(words)), atol=1e-5)
    assert not [node for node in model.ir.graph.all_nodes() if node.op_type == "If"]


def test_building_twice_gives_the_same():
    first, second = (models_zoo.build("transformer", "tensorflow").module.variables for _ in range(2))
    assert all(np.array_equal(one, two) for one, two in zip(first, second, strict=True))
