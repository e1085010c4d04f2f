"""Networks on sequences of tokens."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from entrepot.models_zoo.registry import Built
from entrepot.models_zoo.tensorflow.weights import Weights, rows, tokens


class MaskedRnn(tf.Module):
    def __init__(self, weights: Weights) -> None:
        super().__init__("masked_rnn")
        self.gates, self.candidate, self.head = weights("gates", 12, 16), weights("new", 12, 8), weights("head", 8, 3)

    def __call__(self, x: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        start = tf.zeros([tf.shape(x)[0], 8])
        states = tf.scan(self._step, (tf.transpose(x, [1, 0, 2]), tf.transpose(mask)), start)
        return tf.transpose(states, [1, 0, 2]) @ self.head

    def _step(self, state: tf.Tensor, now: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        x, is_on = now
        update, reset = tf.split(tf.sigmoid(tf.concat([x, state], 1) @ self.gates), 2, 1)
        fresh = tf.tanh(tf.concat([x, reset * state], 1) @ self.candidate)
        return tf.where(is_on[:, None], update * state + (1 - update) * fresh, state)


class Block(tf.Module):
    """Attention of two heads and two dense layers, each on what is normalised."""

    def __init__(self, weights: Weights, name: str) -> None:
        super().__init__(name)
        self.mixed, self.out = weights("mixed", 8, 24), weights("out", 8, 8)
        self.wide, self.narrow = weights("wide", 8, 32), weights("narrow", 32, 8)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        x += self._attention(_normalised(x)) @ self.out
        return x + tf.nn.gelu(_normalised(x) @ self.wide) @ self.narrow

    def _attention(self, x: tf.Tensor) -> tf.Tensor:
        q, k, v = (tf.stack(tf.split(each, 2, -1), 1) for each in tf.split(x @ self.mixed, 3, -1))
        scores = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 2.0)
        return tf.concat(tf.unstack(scores @ v, axis=1), -1)


def _normalised(x: tf.Tensor) -> tf.Tensor:
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5)


class Transformer(tf.Module):
    def __init__(self, weights: Weights) -> None:
        super().__init__("transformer")
        self.embedding, self.places = weights("embedding", 20, 8), weights("places", 32, 8)
        self.blocks = [Block(weights, f"block_{at}") for at in range(2)]

    def __call__(self, tokens: tf.Tensor) -> tf.Tensor:
        x = tf.gather(self.embedding, tokens) + self.places[: tf.shape(tokens)[1]]
        for block in self.blocks:
            x = block(x)
        return tf.matmul(x, self.embedding, transpose_b=True)


class GreedyDecoder(tf.Module):
    def __init__(self, weights: Weights) -> None:
        super().__init__("greedy_decoder")
        self.embedding, self.out = weights("embedding", 20, 8), weights("out", 8, 20)

    @tf.function
    def __call__(self, tokens: tf.Tensor) -> tf.Tensor:
        made = tf.TensorArray(tf.int32, 6)
        for at in tf.range(6):
            tokens = tf.argmax(tf.tanh(tf.gather(self.embedding, tokens)) @ self.out, -1, tf.int32)
            made = made.write(at, tokens)
        return tf.transpose(made.stack())


def masked_rnn() -> Built:
    """A recurrent network; the last step of each row is masked."""
    samples = tuple((rows(count, size, 4), np.arange(size) < np.full((count, 1), size - 1)) for count, size in _SIZES)
    return Built(MaskedRnn(Weights()), samples, frozenset({"x.0", "x.1", "mask.0", "mask.1"}))


def transformer() -> Built:
    """An encoder with tied embeddings."""
    return Built(
        Transformer(Weights()), tuple((tokens(*each),) for each in _SIZES), frozenset({"tokens.0", "tokens.1"})
    )


def greedy_decoder() -> Built:
    """Six tokens after a first one."""
    return Built(GreedyDecoder(Weights()), ((tokens(1),), (tokens(3),)), frozenset({"tokens.0"}))


_SIZES = ((1, 5), (3, 7))
