"""What is saved: networks as functions of one array, with its shape and two calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

_RANDOM = np.random.default_rng(0)


class Saved(NamedTuple):
    """A function.

    Attributes:
        function: Takes one tensor.
        shape: Of that, ``None`` for what varies.
    """

    function: Callable[..., Any]
    shape: list[int | None]

    def rows(self, count: int) -> Any:
        """A call with so many rows, as far as their number varies."""
        return _RANDOM.standard_normal([count if size is None else size for size in self.shape]).astype(np.float32)

    @property
    def calls(self) -> tuple[dict[str, Any], ...]:
        """Two calls."""
        return {"x": self.rows(2)}, {"x": self.rows(3)}


def _weights(*shape: int) -> Any:
    return (_RANDOM.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)


KERNEL, SECOND, DEPTH = _weights(3, 3, 3, 8), _weights(3, 3, 8, 8), _weights(3, 3, 8, 1)
MATRIX, SQUARE, BIAS = _weights(8, 5), _weights(8, 8), _weights(8)


def dense(x):
    return tf.nn.relu(x @ SQUARE + BIAS) @ MATRIX


def convolutions(x):
    x = tf.nn.relu(tf.nn.conv2d(x, KERNEL, 2, "SAME") + BIAS)
    x = tf.nn.relu6(tf.nn.depthwise_conv2d(x, DEPTH, [1, 1, 1, 1], "SAME"))
    x = tf.nn.max_pool2d(tf.nn.conv2d(x, SECOND, 1, "VALID"), 2, 2, "SAME")
    return tf.nn.softmax(tf.reduce_mean(x, [1, 2]) @ MATRIX)


def residual(x):
    y = tf.nn.relu(tf.nn.conv2d(x, SECOND, 1, "SAME") + BIAS)
    return tf.nn.avg_pool2d(x + tf.nn.conv2d(y, SECOND, 1, "SAME"), 2, 2, "VALID")


def attention(x):
    scores = tf.nn.softmax(tf.matmul(x @ SQUARE, x, transpose_b=True) / np.float32(np.sqrt(8.0)))
    return tf.reduce_mean(scores @ x, 1)


def activations(x):
    return tf.concat([tf.tanh(x), tf.sigmoid(x), tf.nn.elu(x), tf.nn.leaky_relu(x), tf.exp(-tf.abs(x))], -1)


def shapes(x):
    one, two = tf.split(x, 2, -1)
    return tf.transpose(tf.stack([one, two], 1), [0, 2, 1])[:, ::2]


def upsampled(x):
    return tf.image.resize(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), [12, 12])


def comparisons(x):
    return tf.where(x > 0.5, tf.maximum(x, 1.0), tf.minimum(x * x, 2.0)) - tf.math.rsqrt(tf.abs(x) + 1.0)


def looped(x):
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(y @ SQUARE)), (0, x))[1]


def chosen(x):
    return tf.gather(x, [2, 0, 1], axis=1) + tf.one_hot(tf.argmax(x, 1), 3)


FUNCTIONS = {
    "dense": Saved(dense, [None, 8]), "convolutions": Saved(convolutions, [None, 12, 12, 3]),
    "residual": Saved(residual, [None, 6, 6, 8]), "attention": Saved(attention, [None, 5, 8]),
    "activations": Saved(activations, [None, 7]), "shapes": Saved(shapes, [None, 6]),
    "upsampled": Saved(upsampled, [None, 6, 6, 2]), "comparisons": Saved(comparisons, [None, 4]),
    "looped": Saved(looped, [2, 8]), "chosen": Saved(chosen, [None, 3]),
}  # fmt: skip
