"""Variables, modules, and functions that call functions."""

from __future__ import annotations

import functools

import numpy as np
import tensorflow as tf

from tests.export_cases.tensorflow.case import add, normal, two

X, Y = two((4, 3), (6, 3))


class Dense(tf.Module):
    def __init__(self, size: int, name: str | None = None) -> None:
        super().__init__(name)
        self.size, self.kernel = size, None

    def __call__(self, x):
        if self.kernel is None:
            values = np.linspace(-1, 1, x.shape[-1] * self.size, dtype=np.float32)
            self.kernel = tf.Variable(values.reshape(x.shape[-1], self.size), name="kernel")
            self.bias = tf.Variable(tf.ones([self.size]), name="bias")
        return x @ self.kernel + self.bias


class Network(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = [Dense(5, "first"), Dense(2, "second")]

    @tf.function
    def __call__(self, x):
        return {"logits": self.layers[1](tf.nn.relu(self.layers[0](x)))}


class Normalised(tf.Module):
    def __init__(self) -> None:
        self.mean, self.scale = tf.Variable([0.1, 0.2, 0.3]), tf.Variable([1.0, 2.0, 3.0])

    def __call__(self, x, training=False):
        if training:
            self.mean.assign(tf.reduce_mean(x, 0))
        return (x - self.mean) / self.scale


class Counting(tf.Module):
    def __init__(self) -> None:
        self.calls = tf.Variable(0)

    def __call__(self, x):
        self.calls.assign_add(1)
        return x * 2.0


class Scratch(tf.Module):
    def __init__(self) -> None:
        self.space = tf.Variable(tf.zeros([3]))

    @tf.function
    def __call__(self, x):
        self.space.assign(tf.reduce_sum(x, 0))
        self.space.assign_add([1.0, 1.0, 1.0])
        return x + self.space


@tf.function(jit_compile=True)
def compiled(x):
    return tf.nn.softmax(x * 2.0)


@tf.function
def outer(x):
    return inner(x) + inner(x * 2.0)


@tf.function
def inner(x):
    return compiled(x) @ tf.ones([3, 2])


@tf.custom_gradient
def clipped(x):
    return tf.clip_by_value(x, -1.0, 1.0), lambda upstream: upstream


@tf.function
def power(x, exponent=2, negate=False):
    y = x**exponent
    return -y if negate else y


WEIGHT = tf.Variable(np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3), name="weight")
TABLE = tf.Variable(normal(7, 3), name="table")

add("network", Network(), X, Y)
add("normalised", Normalised(), X, Y)
add("counting", Counting(), X, Y)
add("scratch", Scratch(), X, Y)
add("dense", Dense(4), X, Y)
add("closure", lambda x: tf.tanh(x @ WEIGHT), X, Y)
add("sparse_read", lambda x: tf.gather(TABLE, tf.cast(tf.abs(x[:, 0]), tf.int32)), X, Y)
add("nested", outer, X, Y)
add("compiled", compiled, X, Y)
add("custom_gradient", lambda x: clipped(x) * 2.0, X, Y)
add("keywords", lambda x: power(x, exponent=3, negate=True), X, Y)
add("partial", functools.partial(power, exponent=3), X, Y)
add("concrete", outer.get_concrete_function(tf.TensorSpec([None, 3])), X, Y)
add("signature", tf.function(lambda x: x @ WEIGHT, input_signature=[tf.TensorSpec([None, 3])]), X, Y)
add("named_scopes", tf.function(lambda x: tf.name_scope("a").__enter__() and x + 1.0), X, Y)
add("gradient", lambda x: tf.gradients(tf.reduce_sum(x**2.0), x)[0] if not tf.executing_eagerly() else 2.0 * x, X, Y)
add("checked", lambda x: tf.debugging.check_numerics(x, "odd") * 2.0, X, Y)
add("row_by_row", lambda x: tf.vectorized_map(lambda row: tf.linalg.matvec(WEIGHT, row, transpose_a=True), x), X, Y)
add("stop_gradient", lambda x: tf.stop_gradient(x) * tf.identity(x), X, Y)
add(  # onnxruntime (1.31) leaves roundings to half precision out that another cast follows
    "cast_weights", lambda x: tf.cast(tf.cast(x, tf.float16) @ tf.cast(WEIGHT, tf.float16), tf.float32), X, Y,
    steps=2.0**-12,
)  # fmt: skip
add(
    "in_a_loop",
    tf.function(lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, inner3(y)), (0, x))[1]),
    X,
    Y,
)


@tf.function
def inner3(y):
    return tf.tanh(y @ WEIGHT)
