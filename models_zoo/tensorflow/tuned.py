"""A language model's encoder that somebody else saved, as those of TensorFlow Hub, trained further under a new head."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from entrepot.models_zoo.registry import Built
from entrepot.models_zoo.tensorflow.sequences import Block
from entrepot.models_zoo.tensorflow.weights import Weights, tokens

_IDS, _TRAINING = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([], tf.bool)


class Encoder(tf.Module):
    """Words and places, blocks of attention, the first state; what it may be called with is part of its file."""

    def __init__(self, weights: Weights) -> None:
        super().__init__("encoder")
        self.embedding, self.places = weights("embedding", 20, 8), weights("places", 32, 8)
        self.blocks = [Block(weights, f"block_{at}") for at in range(2)]
        self.weights = list(self.trainable_variables)

    @tf.function(input_signature=[{"input_word_ids": _IDS, "input_mask": _IDS}, _TRAINING])
    def __call__(self, inputs: Mapping[str, tf.Tensor], training: tf.Tensor) -> dict[str, tf.Tensor]:
        words = inputs["input_word_ids"]
        x = tf.gather(self.embedding, words) + self.places[: tf.shape(words)[1]]
        x *= tf.cast(inputs["input_mask"], tf.float32)[:, :, None]
        x = tf.cond(training, lambda: tf.nn.dropout(x, 0.1, seed=0), lambda: x)
        for block in self.blocks:
            x = block(x)
        return {"sequence_output": x, "pooled_output": tf.tanh(x[:, 0])}


class Tuned(tf.Module):
    """The encoder, read from its file, and a layer on what it pools."""

    def __init__(self, weights: Weights) -> None:
        super().__init__("tuned")
        with tempfile.TemporaryDirectory() as folder:
            tf.saved_model.save(Encoder(weights), folder)
            self.encoder = tf.saved_model.load(folder)
        self.head = weights("head", 8, 3)

    def __call__(self, words: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        return tf.nn.softmax(self.scores(words, mask, training=False))

    def scores(self, words: tf.Tensor, mask: tf.Tensor, training: bool) -> tf.Tensor:
        found = self.encoder({"input_word_ids": words, "input_mask": mask}, tf.constant(training))
        return found["pooled_output"] @ self.head

    def train(self, words: tf.Tensor, mask: tf.Tensor, labels: tf.Tensor, steps: int = 60, rate: float = 0.7) -> None:
        """Descend along the gradient, in all variables of the encoder and in the head."""
        variables: list[Any] = [*self.encoder.weights, self.head]
        for _ in range(steps):
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, self.scores(words, mask, training=True))
                loss = tf.reduce_mean(losses)
            for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                variable.assign_sub(rate * tf.convert_to_tensor(gradient))


def tuned_encoder() -> Built:
    """It tells what the first word is modulo three."""
    model = Tuned(Weights())
    words = tokens(32, 6, seed=2)
    model.train(tf.constant(words), tf.ones_like(words), tf.constant(words[:, 0] % 3))
    samples = tuple((tokens(*size), _mask(*size)) for size in ((1, 5), (3, 7)))
    return Built(model, samples, frozenset({"words.0", "words.1", "mask.0", "mask.1"}))


def _mask(count: int, length: int) -> np.ndarray:
    """All but the last word of each row."""
    return np.repeat([np.arange(length) < length - 1], count, axis=0).astype(np.int32)
