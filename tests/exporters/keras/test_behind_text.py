"""Keras models from behind layers of text that ONNX does not have."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import layers

import entrepot as ep


def texts(*words):
    return np.array([[word] for word in words], object)


SAMPLE = {"city": texts("rome", "oslo"), "job": texts("a", "c"), "size": np.float32([[1, 2, 3], [4, 5, 6]])}
OTHERS = {"city": texts("", "Köln", "x"), "job": texts("b", "a", "?"), "size": np.float32([[0, 1, 2]] * 3)}


def model_of():
    city, job = (keras.Input((1,), dtype="string", name=name) for name in ("city", "job"))
    size = keras.Input((3,), name="size")
    place = keras.Input((1,), dtype="string", name="place")
    rows = layers.Embedding(32, 4)(layers.Hashing(32, name="place_hash")(place))
    inner = keras.Model(place, layers.Flatten()(rows), name="inner")
    crossed = layers.HashedCrossing(16, output_mode="one_hot", name="crossed")([city, job])
    known = layers.StringLookup(vocabulary=["a", "b"], output_mode="one_hot")(job)
    found = layers.Concatenate()([inner(city), crossed, known, size])
    return keras.Model({"city": city, "job": job, "size": size}, {"p": layers.Dense(2, name="p")(found), "q": found})


def test_a_functional_model_begins_behind_its_layers_of_text_nested_ones_too():
    network = model_of()
    calls = [len(layer._inbound_nodes) for layer in network._flatten_layers()]
    model = ep.export(network, SAMPLE, strings="cut", progress=False)
    assert [str(each) for each in model.inputs] == [
        "job: string[batch, 1]",
        "size: float32[batch, 3]",
        "place_hash: int64[batch, 1]",
        "crossed: float32[batch, 16]",
    ]
    assert "input 'place_hash' is the result of Hashing 'place_hash', which stays in Python" in model.notes
    given = {
        "job": OTHERS["job"],
        "size": OTHERS["size"],
        "place_hash": network.get_layer("inner").get_layer("place_hash")(OTHERS["city"]).numpy(),
        "crossed": network.get_layer("crossed")([OTHERS["city"], OTHERS["job"]]).numpy(),
    }
    found, wanted = ep.Session(model, providers=["onnxruntime"]).run(given), network(OTHERS)
    for name in ("p", "q"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=1e-6)
    assert ep.verify(network, model, SAMPLE).ok
    assert [len(layer._inbound_nodes) for layer in network._flatten_layers()] == calls


def test_a_sequential_model_keeps_its_masks():
    words = layers.TextVectorization(vocabulary=["a", "b"], split="character", output_sequence_length=5, name="words")
    parts = [keras.Input((1,), dtype="string"), words, layers.Embedding(4, 3, mask_zero=True), layers.LSTM(2)]
    network = keras.Sequential(parts)
    model = ep.export(network, texts("abba", "b"), strings="cut", progress=False)
    assert [str(each) for each in model.inputs] == ["words: int64[batch, 5]"]
    others = texts("ba", "", "bbbbbbb")
    (found,) = ep.Session(model).run([words(others).numpy()]).values()
    np.testing.assert_allclose(found, network(others), rtol=1e-5, atol=1e-6)


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.hashed, self.rows, self.out = layers.Hashing(16), layers.Embedding(16, 2), layers.Dense(2)

    def call(self, text, x):
        return self.out(keras.ops.concatenate([self.rows(self.hashed(text)), x], -1))


def test_a_subclassed_model_begins_behind_operations_of_its_backend():
    network, sample = Subclassed(), {"text": np.array(["x", "y"], object), "x": np.ones((2, 3), np.float32)}
    model = ep.export(network, sample, strings="cut", progress=False)
    assert [str(each) for each in model.inputs] == ["x: float32[batch, 3]", "hash: int64[batch]"]
    assert model.metadata["entrepot.framework"].startswith("keras")
    others = np.array(["", "z", "é"], object)
    given = {"x": np.zeros((3, 3), np.float32), "hash": network.hashed(others).numpy()}
    (found,) = ep.Session(model).run(given).values()
    np.testing.assert_allclose(found, network(others, given["x"]), rtol=1e-5, atol=1e-6)


def test_refusals_name_the_way_out():
    with pytest.raises(ep.ConversionError, match=r'Hashing: fingerprints.*strings="cut"'):
        ep.export(keras.Sequential([keras.Input((1,), dtype="int64"), layers.Hashing(4)]), progress=False)


def test_nothing_but_text_is_refused():
    network = keras.Sequential([keras.Input((1,), dtype="string"), layers.Hashing(4)])
    with pytest.raises(ep.ConversionError, match="nothing of the model is left"):
        ep.export(network, texts("a"), strings="cut", progress=False)


def test_what_has_counterparts_is_not_cut():
    network = keras.Sequential([keras.Input((1,), dtype="string"), layers.StringLookup(vocabulary=["a"])])
    model = ep.export(network, texts("a", "b"), strings="cut", progress=False)
    assert [each.dtype for each in model.inputs] == ["string"]
