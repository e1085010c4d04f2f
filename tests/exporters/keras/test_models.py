"""Models of Keras, exported without a sample and proved."""

from __future__ import annotations

import keras
import numpy as np
import pandas as pd
import pytest
from keras import layers

import entrepot as ep
from entrepot.ir.errors import InputError


def sequential(shape, *parts, dtype="float32"):
    return keras.Sequential([keras.Input(shape, dtype=dtype), *parts])


def attention():
    x = keras.Input((None, 8), name="x")
    seen = layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    return keras.Model(x, layers.LayerNormalization()(layers.Add()([x, seen])))


class Replaced(layers.Layer):
    def call(self, x):
        first = keras.ops.cast(keras.ops.sum(x) > 0, "int32")
        y = keras.ops.slice_update(x, (0, first, 0), -x[:, :2])
        return keras.ops.slice_update(y, (0, 1000, 1), 2 * x[:, :1, :2])


MODELS = {
    "dense": lambda: sequential((4,), layers.Dense(3, activation="gelu"), layers.Dropout(0.5), layers.Dense(2)),
    "convolutions": lambda: sequential(
        (None, None, 3), layers.Conv2D(4, 3, padding="same", strides=2, activation="relu"),
        layers.BatchNormalization(), layers.MaxPooling2D(2), layers.GlobalAveragePooling2D(),
    ),
    "masked": lambda: sequential(
        (None,), layers.Embedding(10, 4, mask_zero=True), layers.LSTM(5, return_sequences=True), layers.LSTM(3),
        dtype="int32",
    ),
    "both directions": lambda: sequential((None, 4), layers.Bidirectional(layers.GRU(5)), layers.Dense(3)),
    "stacked cells": lambda: sequential((None, 4), layers.RNN([layers.LSTMCell(3), layers.GRUCell(4)])),
    "causal attention": attention,
    "pooled to a certain size": lambda: sequential(
        (None, None, 3), layers.AdaptiveAveragePooling2D(3), layers.AdaptiveMaxPooling2D((2, 3))
    ),
    "pooled by maxima at once": lambda: sequential((None, None, 3), layers.AdaptiveMaxPooling2D((4, 2))),
    "an activation of another module": lambda: sequential(
        (None, None, 3),
        layers.Conv2D(2, 3, padding="same", activation="mish"),
        layers.UpSampling2D(interpolation="bilinear"),
    ),
    "a part replaced": lambda: sequential((None, 4), Replaced()),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_every_size_that_a_model_leaves_open_varies(name):
    model = MODELS[name]()
    exported = ep.export(model, progress=False)
    assert exported.report.ok
    sizes = [spec.shape for spec in exported.inputs]
    assert [[isinstance(size, str) for size in shape] for shape in sizes] == [
        [size is None for size in tensor.shape] for tensor in model.inputs
    ]


@pytest.mark.parametrize("bound", [None, 2.0])
@pytest.mark.parametrize("slope", [0.0, 0.1])
@pytest.mark.parametrize("threshold", [0.5, 1.0])
def test_a_bounded_activation_is_what_keras_computes_at_its_bounds(bound, slope, threshold):
    model = sequential((9,), layers.ReLU(bound, slope, threshold))
    x = np.array([[-3, -1, -0.5, 0, 0.25, 0.5, 1, 2, 5]], np.float32)
    session = ep.Session(ep.export(model, progress=False))
    (found,) = session.run({session.inputs[0].name: x}).values()
    np.testing.assert_allclose(found, keras.ops.convert_to_numpy(model(x)), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", [layers.LSTM, layers.GRU, layers.SimpleRNN])
def test_recurrent_layers_in_double_precision_run_in_onnxruntime(kind):
    model = sequential((None, 4), kind(3, return_sequences=True, dtype="float64"), dtype="float64")
    session = ep.Session(ep.export(model, progress=False), providers=["onnxruntime"])
    x = np.random.default_rng(0).standard_normal((2, 5, 4))
    (found,) = session.run({session.inputs[0].name: x}).values()
    products = x.shape[1] * (x.shape[2] + 3 + 2)  # all that a state follows from, none of them far above 1
    off = products * np.finfo(np.float64).eps
    np.testing.assert_allclose(found, keras.ops.convert_to_numpy(model(x)), rtol=1e-12, atol=off)


class LogOfSum(layers.Layer):
    def call(self, x):
        return keras.ops.logsumexp(x, axis=-1)


def test_a_row_masked_by_the_lowest_number_is_not_one_of_infinities():
    lowest = np.finfo(np.float32).min
    model = ep.export(sequential((2,), LogOfSum()))
    x = np.array([[lowest, lowest], [-np.inf, -np.inf], [lowest, 1]], np.float32)
    for provider in ("cpu", "onnxruntime"):
        (found,) = ep.Session(model, providers=[provider]).run({model.inputs[0].name: x}).values()
        np.testing.assert_array_equal(found, np.array([lowest, -np.inf, 1], np.float32))


def test_a_network_in_bfloat16_runs_in_onnxruntime():
    policy = {"dtype": "mixed_bfloat16"}
    model = sequential(
        (8, 8, 3), layers.Conv2D(4, 3, activation="relu", **policy), layers.BatchNormalization(**policy),
        layers.GlobalAveragePooling2D(**policy), layers.Dense(3, activation="softmax"),
    )  # fmt: skip
    session = ep.Session(ep.export(model, progress=False), providers=["onnxruntime"])
    x = np.random.default_rng(0).random((2, 8, 8, 3), np.float32)
    (found,) = session.run({session.inputs[0].name: x}).values()
    np.testing.assert_allclose(found, keras.ops.convert_to_numpy(model(x)), rtol=0.02, atol=0.02)


def test_the_middle_of_an_image_of_any_size():
    model = sequential((None, None, 3), layers.CenterCrop(8, 6))
    session = ep.Session(ep.export(model, progress=False))
    for size in ((9, 7), (8, 6), (5, 9), (12, 3), (4, 4)):
        x = np.random.default_rng(0).random((2, *size, 3), np.float32)
        (found,) = session.run({session.inputs[0].name: x}).values()
        np.testing.assert_allclose(found, keras.ops.convert_to_numpy(model(x)), rtol=1e-5, atol=1e-6)


def _trained(model, x):
    model.compile("adam", "mse")
    model.fit(x, np.zeros((len(x), 3), np.float32), verbose=0)


def _assigned(model, x):
    for variable in model.variables:
        variable.assign(variable * 2 + 1)


def _subtracted(model, x):
    for variable in model.variables:
        variable.assign_sub(variable / 2 + 1)


@pytest.mark.parametrize("change", [_trained, _assigned, _subtracted])
def test_a_model_that_is_changed_afterwards_leaves_its_export_alone(change):
    model, x = sequential((4,), layers.Dense(3), layers.Dense(3)), np.ones((2, 4), np.float32)
    exported = ep.export(model, x)
    session = ep.Session(exported)
    name = exported.inputs[0].name
    before = {each: tensor.const_value.numpy().copy() for each, tensor in exported.ir.graph.initializers.items()}
    result = session.run({name: x})
    change(model, x)
    for each, tensor in exported.ir.graph.initializers.items():
        np.testing.assert_array_equal(tensor.const_value.numpy(), before[each])
    for key, value in ep.Session(exported).run({name: x}).items():
        np.testing.assert_array_equal(value, result[key])


class Branching(keras.Model):
    """A subclassed model, which nothing says the inputs of."""

    def __init__(self):
        super().__init__()
        self.first, self.second = layers.Dense(3), layers.Dense(2)

    def call(self, x, training=None):
        return {"y": self.second(keras.ops.relu(self.first(x)) + 1.0)}


def test_a_subclassed_model_takes_a_sample_and_keeps_the_names_of_its_weights():
    model = Branching()
    exported = ep.export(model, np.ones((2, 4), np.float32), progress=False)
    assert exported.report.ok
    assert [spec.name for spec in exported.outputs] == ["y"]
    assert {variable.path for variable in model.variables} <= set(exported.ir.graph.initializers)


def test_a_subclassed_model_without_a_sample_is_refused():
    with pytest.raises(ep.InputError, match="does not say what it is called with"):
        ep.export(Branching(), progress=False)


NETWORKS = {
    "without scales": lambda: layers.BatchNormalization(scale=False),
    "with scales": layers.BatchNormalization,
    "with neither": lambda: layers.BatchNormalization(scale=False, center=False),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_of_images_has_one_transposition_whatever_its_normalisations_learn(name):
    model = sequential(
        (16, 16, 3), layers.Conv2D(4, 3, use_bias=False), NETWORKS[name](), layers.ReLU(), layers.MaxPooling2D(2),
        layers.SeparableConv2D(8, 3, padding="same"), NETWORKS[name](), layers.Flatten(), layers.Dense(3),
    )  # fmt: skip
    exported = ep.export(model, progress=False)
    assert exported.report.ok
    assert [node.op_type for node in exported.ir.graph.all_nodes()].count("Transpose") == 1


class Counted(layers.Layer):
    """Counts how often it is called, and takes a batch of any size but 3."""

    calls = 0

    def call(self, x):
        Counted.calls += 1
        if x.shape[0] == 3:
            raise ValueError("not three")
        return x * 2


def test_a_batch_that_a_layer_of_a_users_own_refuses_is_found_by_running_it():
    model = sequential((4,), layers.Dense(4), Counted())
    exported = ep.export(model, np.ones((2, 4), np.float32), progress=False)
    assert exported.report.ok
    assert all(run.verdict == "refused" for run in exported.report.runs if run.label == "batch=3")


def test_sizes_that_a_model_states_are_not_tried_and_the_notes_say_them():
    exported = ep.export(sequential((4, 5), layers.Dense(3)), progress=False)
    assert any("the module refuses other sizes (it states this one)" in note for note in exported.notes)


def test_a_sample_that_a_model_does_not_take_is_refused():
    with pytest.raises(ep.InputError, match="does not take the sample"):
        ep.export(sequential((4,), layers.Dense(8)), np.ones((2, 5), np.float32), progress=False)


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (np.zeros((2, 7), np.float32), "expected axis -1 of input shape to have value 4"),
        (np.array([["a", "b", "c", "d"]]), "the sample is of <U1, and the model takes float32"),
        ([[1.0, 2.0], [3.0]], "rows have to be of one length"),
    ],
)
def test_a_sample_that_a_model_does_not_take_is_refused_with_the_reason(sample, reason):
    with pytest.raises(ep.InputError, match=reason):
        ep.export(MODELS["dense"](), sample, progress=False)


@pytest.mark.parametrize(
    "form", [pd.DataFrame, np.ndarray.tolist, lambda array: [array]], ids=["frame", "list", "alone"]
)
def test_a_sample_may_be_a_frame_or_lists_of_numbers(form):
    exported = ep.export(MODELS["dense"](), form(np.ones((1, 4))), progress=False)
    assert [spec.shape for spec in exported.inputs] == [("batch", 4)]


def test_a_sample_with_too_few_arrays_is_refused():
    one, two = keras.Input((2,)), keras.Input((2,))
    with pytest.raises(ep.InputError, match="the sample has 1 arrays, the model takes 2"):
        ep.export(keras.Model([one, two], one + two), np.ones((1, 2)), progress=False)


class UnfitError(Exception):
    """As libraries for shapes have it: neither a ValueError nor a TypeError."""


class Four(layers.Layer):
    def call(self, x):
        if x.shape[-1] != 4:
            raise UnfitError("not four")
        if x.shape[0] is None:
            raise UnfitError("no number")
        assert x.shape[0] != 3
        return x * 2


def test_errors_of_any_kind_are_refusals_that_name_the_line():
    model = ep.export(Four(), np.ones((2, 4), "float32"), progress=False)
    assert model.inputs[0].shape == ("batch", 4)  # traced at several sizes, as a symbol is refused
    rows = np.arange(24, dtype="float32").reshape(6, 4)
    np.testing.assert_array_equal(ep.Session(model)(rows), rows * 2)
    with pytest.raises(
        ep.InputError, match=r'UnfitError: not four, at test_models.py:\d+ in call: raise UnfitError\("not four"\)'
    ):
        ep.export(Four(), np.ones((2, 5), "float32"), progress=False)


def test_a_text_is_no_sample():
    with pytest.raises(ep.InputError, match="a str where an array belongs"):
        ep.export(sequential((4,), layers.Dense(2)), "sample.npy", progress=False)


class _Complex(keras.Model):
    def call(self, x):
        return keras.ops.cast(x, "complex64") * (1 + 2j)


def test_complex_numbers_are_refused_by_name():
    """A layer that computes in real numbers drops what is imaginary, and says nothing."""
    network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    with pytest.raises(InputError, match="called with complex64"):
        ep.export(network, np.ones((3, 4), np.complex64), progress=False)
    with pytest.raises(InputError, match="returns complex64"):
        ep.export(_Complex(), np.ones((3, 4), np.float32), progress=False)


def test_words_are_split_at_any_white_space_of_ascii():
    """onnxruntime (1.31) splits at spaces alone where no delimiter is given."""
    layer = layers.TextVectorization(output_sequence_length=5, vocabulary=["a", "cat", "sat"])
    words = keras.Input((1,), dtype="string")
    network = keras.Model(words, layer(words))
    texts = [["a\tcat\nsat"], [" \x0ba\r cat\x0c"], [""], ["a\u00a0cat sat"]]
    model = ep.export(network, np.array(texts[:1], object), progress=False)
    (found,) = ep.Session(model, providers=["onnxruntime"]).run([np.array(texts, object)]).values()
    np.testing.assert_array_equal(found, network(keras.ops.convert_to_tensor(texts)))


@pytest.mark.parametrize("provider", ["cpu", "onnxruntime"])
def test_bytes_of_any_size_are_resized_to_the_same_bytes(provider):
    """onnxruntime (1.31) interpolates in another order than TensorFlow, which shows once it is rounded."""
    network = sequential((None, None, 3), layers.Resizing(8, 8), dtype="uint8")
    rng = np.random.default_rng(0)
    model = ep.export(network, rng.integers(0, 256, (2, 12, 10, 3)).astype(np.uint8), progress=False)
    session = ep.Session(model, providers=[provider])
    for shape in ((3, 14, 13, 3), (1, 7, 33, 3), (2, 1, 5, 3), (1, 64, 64, 3)):
        images = rng.integers(0, 256, shape).astype(np.uint8)
        (found,) = session.run([images]).values()
        np.testing.assert_array_equal(found, network(images))
