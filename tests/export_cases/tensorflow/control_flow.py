"""Branches, loops, maps, scans and TensorArray."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.export_cases.tensorflow.case import add, normal, two

X, Y = two((4, 3), (6, 3))


def rows_above(x):
    total = tf.constant(0.0)
    for row in x:
        if tf.reduce_sum(row) > 0:
            total += tf.reduce_max(row)
        else:
            continue
    return total


def leaves_early(x):
    total = tf.zeros([3])
    for row in x:
        if tf.reduce_sum(total) > 2.0:
            break
        total += row
    return total


def collects(x):
    found = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in tf.range(tf.shape(x)[0]):
        found = found.write(i, x[i] * tf.cast(i, tf.float32))
    return found.stack()


def collects_backwards(x):
    found = tf.TensorArray(tf.float32, size=tf.shape(x)[0], element_shape=[3])
    for i in tf.range(tf.shape(x)[0] - 1, -1, -1):
        found = found.write(i, x[i] + 1.0)
    return found.stack()


def reads_and_writes(x):
    given = tf.TensorArray(tf.float32, size=tf.shape(x)[0]).unstack(x)
    made = tf.TensorArray(tf.float32, size=tf.shape(x)[0])
    for i in tf.range(tf.shape(x)[0]):
        made = made.write(i, given.read(i) ** 2.0)
    return made.concat(), made.size()


def recurrent(x):
    state = tf.zeros([tf.shape(x)[0], 4])
    kernel = tf.constant(np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4))
    for t in tf.range(tf.shape(x)[1]):
        state = tf.tanh(state @ kernel + x[:, t, tf.newaxis])
    return state


def newton(x):
    guess = tf.ones_like(x)
    while tf.reduce_max(tf.abs(guess * guess - x)) > 1e-3:
        guess = 0.5 * (guess + x / guess)
    return guess


def collatz(n):
    steps = tf.constant(0)
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def fibonacci(x):
    one, other = x, x + 1.0
    for _ in tf.range(7):
        one, other = other, one + other
    return one


def beam(x):
    best, scores = tf.zeros([2], tf.int32), tf.zeros([2])
    for t in tf.range(tf.shape(x)[0]):
        every = scores[:, tf.newaxis] + x[t]
        scores, places = tf.math.top_k(tf.reshape(every, [-1]), 2)
        best = best * 3 + places
    return best, scores


def nested_loops(x):
    total = tf.zeros([])
    for i in tf.range(tf.shape(x)[0]):
        for j in tf.range(i + 1):
            total += x[i, 0] * x[j, 1]
    return total


def early_return(x):
    if tf.reduce_sum(x) > 0:
        return x * 2.0
    return x - 1.0


for _name, _function in {
    "cond": lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x + 1.0, lambda: x * 2.0),
    "cond_structures": lambda x: tf.cond(x[0, 0] > 0, lambda: {"a": x, "b": x[0]}, lambda: {"a": -x, "b": x[1]}),
    "cond_nested": lambda x: tf.cond(x[0, 0] > 0, lambda: tf.cond(x[1, 1] > 0, lambda: x, lambda: -x), lambda: x * 3.0),
    "case": lambda x: tf.case([(x[0, 0] > 1.0, lambda: x), (x[0, 0] > 0.0, lambda: -x)], default=lambda: x * 0.5),
    "switch_case": lambda x: tf.switch_case(tf.cast(x[0, 0], tf.int32), [lambda: x, lambda: x + 1.0, lambda: x + 2.0]),
    "map_fn": lambda x: tf.map_fn(lambda row: row * tf.reduce_sum(row), x),
    "map_fn_two": lambda x: tf.map_fn(lambda pair: pair[0] * pair[1], (x, x + 1.0), fn_output_signature=tf.float32),
    "map_fn_types": lambda x: tf.map_fn(tf.argmax, x, fn_output_signature=tf.int64),
    "map_fn_structures": lambda x: tf.map_fn(
        lambda row: (row, tf.reduce_max(row)), x, fn_output_signature=(tf.float32, tf.float32)),
    "vectorized_map": lambda x: tf.vectorized_map(lambda row: row * tf.reduce_sum(row), x),
    "scan": lambda x: tf.scan(lambda total, row: total + row, x),
    "scan_initial": lambda x: tf.scan(lambda total, row: total * 0.5 + row, x, initializer=tf.ones([3])),
    "scan_reverse": lambda x: tf.scan(tf.maximum, x, reverse=True),
    "scan_structures": lambda x: tf.scan(lambda s, row: (s[0] + row, s[1] * 0.9), x, (tf.zeros([3]), tf.ones([]))),
    "foldl": lambda x: tf.foldl(lambda total, row: total * 0.5 + row, x),
    "foldr": lambda x: tf.foldr(lambda total, row: total * 0.5 + row, x),
    "while_counted": lambda x: tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y * 1.1), (0, x)),
    "while_limited": lambda x: tf.while_loop(lambda y: True, lambda y: (y + 1.0,), (x,), maximum_iterations=4),
    "while_value": lambda x: tf.while_loop(lambda y: tf.reduce_sum(tf.abs(y)) < 99.0, lambda y: (y * 2.0 + 1.0,), (x,)),
    "while_grows": lambda x: tf.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, tf.concat([y, x[:1]], 0)), (0, x),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 3])))[1],
    "while_down": lambda x: tf.while_loop(lambda i, y: i > 0, lambda i, y: (i - 2, y + 1.0), (9, x)),
    "rows_above": rows_above, "leaves_early": leaves_early, "collects": collects, "nested_loops": nested_loops,
    "collects_backwards": collects_backwards, "reads_and_writes": reads_and_writes, "recurrent": recurrent,
    "fibonacci": fibonacci, "beam": beam, "early_return": early_return,
    "unrolled": lambda x: [x * float(i) for i in range(3)],
    "accumulate": lambda x: tf.math.accumulate_n([x, x, x]), "asserts": lambda x: (
        tf.debugging.assert_rank(x, 2), tf.debugging.assert_greater(tf.shape(x)[0], 0), x + 1.0)[2],
    "prints": lambda x: (tf.print(x), x * 2.0)[1],
}.items():  # fmt: skip
    add(_name, tf.function(_function), X, Y)

add("newton", tf.function(newton), np.abs(X) + 0.5, np.abs(Y) + 0.5)
add("collatz", tf.function(collatz), np.int32(7), np.int32(11))
add(
    "sequence_to_sequence",
    lambda x: tf.map_fn(lambda s: tf.scan(lambda a, b: a + b, s), x),
    normal(2, 4, 3),
    normal(3, 5, 3),
)
add(
    "map_fn_over_lengths",
    lambda x, n: tf.map_fn(lambda pair: tf.reduce_mean(pair[0][: pair[1]], 0), (x, n), fn_output_signature=tf.float32),
    (normal(3, 6, 4), np.array([2, 6, 3], np.int32)),
    (normal(2, 5, 4), np.array([1, 5], np.int32)),
)
