"""Strings, as far as ONNX has operators for them."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.export_cases.tensorflow.case import add

WORDS, OTHERS = np.array(["a", "bc", "zz"], object), np.array(["bc", "q"], object)


def table(keys, values, default):
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)


IDS = table(["a", "bc"], tf.constant([1, 2], tf.int64), -1)
NAMES = table(tf.constant([0, 1], tf.int64), ["no", "yes"], "?")
SCORES = table(["a", "bc"], [0.5, 1.5], 0.0)

add("identifiers", IDS.lookup, WORDS, OTHERS)
add("names", NAMES.lookup, np.array([0, 1, 5]), np.array([1, 0]))
add("scores", lambda x: SCORES.lookup(x) * 2.0, WORDS, OTHERS)
add("there_and_back", lambda x: NAMES.lookup(IDS.lookup(x) - 1), WORDS, OTHERS)
add("equal", lambda x: tf.equal(x, "bc"), WORDS, OTHERS)
add("kept", lambda x: tf.reshape(tf.identity(x), [-1, 1]), WORDS, OTHERS)
add("gathered", lambda x: tf.gather(x, [1, 0]), WORDS, OTHERS)
add("joined", lambda x: tf.concat([x, x], 0), WORDS, OTHERS)
add("looked_up_with_an_axis_more", lambda x: tf.cast(IDS.lookup(x) > 0, tf.float32)[..., None] * 2.0, WORDS, OTHERS)

VOCABULARY = tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(["a", "bc"], np.arange(2)), 1)
add("a_vocabulary_with_one_bucket", lambda x: tf.gather(tf.eye(3), VOCABULARY.lookup(x)), WORDS, OTHERS)

MARKED = np.array([["a, b!", "", "!?", "no-one's"], ["c", "!!d!!", " e ", ".,.x"]], object)
add("stripped", lambda x: tf.strings.regex_replace(x, "[!-/:-@]", ""), MARKED, MARKED[:1, :3])
BROKEN = np.array([["a<br />b<br />", "<br />", "<br / >c", "", "d"]], object)
add("a_text_replaced", lambda x: tf.strings.regex_replace(x, "<br />", " "), BROKEN, BROKEN[:, 1:4])
add("replaced", lambda x: tf.strings.regex_replace(tf.strings.lower(x), "[,!]", " <stop> "), MARKED, MARKED[1:])

TABLE, NARROW = np.array([["a", "b", "c"], ["d", "", "f"]], object), np.array([["x", "y", "z"]], object)
add("joined_along_rows", lambda x: tf.strings.reduce_join(x, axis=-1, separator=" "), TABLE, NARROW)
add("joined_along_all", lambda x: tf.strings.reduce_join(x[:, 1:], axis=[1], keepdims=True), TABLE, NARROW)
WORDS_IN_ROWS, OTHER_ROWS = np.array(["a b c", "d", ""], object), np.array(["e f", "g h i j"], object)
add("pairs_of_words", lambda x: tf.strings.ngrams(tf.strings.split(x), 2).to_tensor(), WORDS_IN_ROWS, OTHER_ROWS)
add(
    "words_and_pairs",
    lambda x: tf.strings.ngrams(tf.strings.split(x), [1, 2], "+").to_tensor(),
    WORDS_IN_ROWS,
    OTHER_ROWS,
)
