"""Models on words."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from entrepot.models_zoo.registry import Built
from entrepot.models_zoo.tensorflow.weights import Weights

_WORDS = ("good", "bad", "fine", "poor", "great")


class WordScorer(tf.Module):
    def __init__(self, weights: Weights) -> None:
        super().__init__("word_scorer")
        entries = tf.lookup.KeyValueTensorInitializer(_WORDS, tf.range(1, len(_WORDS) + 1, dtype=tf.int64))
        self.table = tf.lookup.StaticHashTable(entries, 0)
        self.vectors, self.head = weights("vectors", len(_WORDS) + 1, 4), weights("head", 4, 2)

    def __call__(self, words: tf.Tensor) -> tf.Tensor:
        return tf.nn.softmax(tf.reduce_sum(tf.gather(self.vectors, self.table.lookup(words)), 1) @ self.head)


def word_scorer() -> Built:
    """Rows of words, known or not."""
    samples = (
        (np.array([["good", "odd"]], object),),
        (np.array([["bad", "fine"], ["poor", ""], ["great", "good"]], object),),
    )
    return Built(WordScorer(Weights()), samples, frozenset({"words.0"}))
