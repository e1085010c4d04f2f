"""Functions of TensorFlow from behind operations on text that ONNX does not have."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import tensorflow as tf

import entrepot as ep

TEXTS = np.array(["hello", "a", "bb"], object)
OTHERS = np.array(["one", "b", "a", "Straße", ""], object)


class Hashed(tf.Module):
    def __init__(self):
        self.rows = tf.Variable(tf.random.stateless_normal([16, 3], [0, 1]), name="rows")
        words = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
        self.table = tf.lookup.StaticHashTable(words, 0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string), tf.TensorSpec([None])])
    def __call__(self, text, x):
        return {
            "scaled": tf.gather(self.rows, buckets(text)) * x[:, None],
            "known": tf.cast(self.table.lookup(text), tf.float32) + x,
        }


def buckets(text):
    beginning = tf.strings.substr(text, 0, 2, name="beginning")
    return tf.strings.to_hash_bucket_fast(beginning, 16, name="bucket")


def run(model, *inputs):
    return ep.Session(model, providers=["onnxruntime"]).run(list(inputs))


def test_a_model_begins_at_the_last_operation_that_stays_in_python(tmp_path):
    module, x = Hashed(), np.arange(3, dtype=np.float32)
    tf.saved_model.save(module, str(tmp_path))
    sample = {"text": TEXTS, "x": x}
    for source in (module, str(tmp_path)):
        model = ep.export(source, sample, strings="cut", progress=False)
        assert {str(each) for each in model.inputs} == {
            "text: string[batch]",
            "x: float32[batch]",
            "bucket: int64[batch]",
        }
        (note,) = [each for each in model.notes if "Python" in each]
        assert "'bucket' is the result of StringToHashBucketFast 'bucket'" in note
        assert "as does Substr 'beginning' before it" in note
        assert note in str(model)
        assert model.report.ok
        assert "rows" in model.ir.graph.initializers
        other = np.linspace(-1, 1, 5, dtype=np.float32)
        found = ep.Session(model).run({"text": OTHERS, "x": other, "bucket": buckets(OTHERS).numpy()})
        wanted = module(OTHERS, other)
        for name in ("scaled", "known"):
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-6)
        assert ep.verify(source, model, sample).ok


def test_a_model_may_begin_with_text():
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["he", "on"], [1.0, 2.0]), 0.5)
    model = ep.export(
        lambda text: table.lookup(tf.strings.substr(text, 0, 2, name="part")), tf.constant(TEXTS), strings="cut"
    )
    assert [str(each) for each in model.inputs] == ["part: string[batch]"]
    (found,) = run(model, np.array(["on", "he", "x"], object)).values()
    assert found.tolist() == [2.0, 1.0, 0.5]


def test_loops_over_text_stay_whole():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def function(text):
        count = tf.zeros([tf.size(text)], tf.int32)
        for at in tf.range(3):
            count += tf.strings.length(text) * at
        return tf.cast(count, tf.float32) / 2

    model = ep.export(function, TEXTS, strings="cut", progress=False)
    (begin,) = model.inputs
    assert begin.dtype == "int32"
    (found,) = run(model, np.array([3, 6], np.int32)).values()
    assert found.tolist() == [1.5, 3.0]


def test_lists_and_ragged_rows_of_text_stay_with_it():
    def function(text):
        letters = tf.strings.unicode_decode(text, "UTF-8").to_tensor(shape=[None, 4])
        return tf.reduce_sum(letters, -1) * 2

    model = ep.export(function, tf.constant(TEXTS), strings="cut", progress=False)
    letters = tf.strings.unicode_decode(OTHERS, "UTF-8")
    names = [each.name for each in model.inputs]
    given = dict(zip(names, (letters.row_splits.numpy(), letters.values.numpy()), strict=True))
    (found,) = ep.Session(model).run(given).values()
    assert found.tolist() == function(OTHERS).numpy().tolist()


def example(values, word):
    features = {
        "values": tf.train.Feature(float_list=tf.train.FloatList(value=values)),
        "word": tf.train.Feature(bytes_list=tf.train.BytesList(value=[word.encode()])),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def test_what_is_parsed_of_bytes_becomes_inputs():
    stated = {"values": tf.io.FixedLenFeature([3], tf.float32), "word": tf.io.FixedLenFeature([], tf.string)}

    def function(examples):
        parsed = tf.io.parse_example(examples, stated, name="parsed")
        return tf.where(parsed["word"] == "x", 1.0, 2.0) * tf.reduce_sum(parsed["values"], -1)

    sample = tf.constant([example([1, 2, 3], "x"), example([0, 200, 1], "é")])  # which is no text
    model = ep.export(function, sample, strings="cut", progress=False)
    assert [str(each) for each in model.inputs] == [
        "parsed_dense_values_0: float32[batch, parsed_dense_values_0_dim1]",
        "parsed_dense_values_1: string[batch]",
    ]
    (found,) = run(model, np.float32([[1, 1, 1], [1, 2, 3]]), np.array(["y", "x"], object)).values()
    assert found.tolist() == [6.0, 6.0]


def test_what_is_decoded_of_bytes_becomes_an_input():
    def function(images):
        decode = functools.partial(tf.io.decode_png, channels=1)
        return tf.reduce_mean(tf.cast(tf.map_fn(decode, images, fn_output_signature=tf.uint8), tf.float32), [1, 2])

    images = np.arange(12, dtype=np.uint8).reshape(2, 3, 2, 1) * 20
    encoded = tf.stack([tf.io.encode_png(image) for image in images])
    model = ep.export(function, encoded, strings="cut", progress=False)
    (begin,) = model.inputs
    assert begin.dtype == "uint8"
    (found,) = run(model, images[:, :2]).values()
    np.testing.assert_allclose(found, images[:, :2].mean((1, 2)))


def test_what_has_counterparts_is_not_cut():
    model = ep.export(lambda text: tf.strings.lower(text) == "a", tf.constant(TEXTS), strings="cut", progress=False)
    assert [str(each) for each in model.inputs] == ["text: string[batch]"]
    assert not any("Python" in note for note in model.notes)


def test_refusals_name_the_way_out():
    with pytest.raises(ep.UnsupportedOpError, match=r'Substr.*strings="cut"'):
        ep.export(Hashed(), (TEXTS, np.zeros(3, np.float32)), progress=False)
    with pytest.raises(ep.UnsupportedOpError, match="EagerPyFunc") as refused:
        ep.export(lambda x: tf.py_function(lambda y: y + 1, [x], tf.float32), tf.constant([0.5]), progress=False)
    assert "strings" not in str(refused.value)


def test_nothing_but_text_is_refused():
    with pytest.raises(ep.ConversionError, match="nothing of the function is left"):
        ep.export(
            lambda text: tf.strings.length(text, unit="UTF8_CHAR"), tf.constant(TEXTS), strings="cut", progress=False
        )


def test_variables_that_change_are_refused():
    count = tf.Variable(0.0)

    def function(text):
        count.assign(tf.reduce_sum(tf.cast(tf.strings.length(text), tf.float32)))
        return count * 2

    with pytest.raises(ep.ConversionError, match="changes a variable"):
        ep.export(function, tf.constant(TEXTS), strings="cut", progress=False)
