"""What TensorFlow itself is asked for while a graph is written: tables, and sequences that depend on nothing else."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.node import Node

_POINTS = 0x110000


@composed("UnicodeScript")
def scripts(node: Node, points: Any) -> tf.Tensor:
    """Of code points, by the ranges that share one."""
    starts, kinds = _ranges()
    places = tf.raw_ops.UpperBound(sorted_inputs=starts[None], values=tf.reshape(points, [1, -1]))
    return tf.reshape(tf.gather(kinds, places[0]), tf.shape(points))


@functools.cache
def _ranges() -> tuple[np.ndarray, np.ndarray]:
    with tf.init_scope():
        every = tf.raw_ops.UnicodeScript(input=tf.range(_POINTS)).numpy()
    starts = np.flatnonzero(np.diff(every, prepend=-2))
    return np.append(starts, _POINTS).astype(np.int32), np.concatenate([[-1], every[starts], [-1]]).astype(np.int32)


@composed("SobolSample")
def sobol(node: Node, *given: Any) -> tf.Tensor:
    """Points that fill a cube evenly, of which there is but one sequence."""
    known = [tf.get_static_value(each) for each in given]
    if any(each is None for each in known):
        node.refuse("of a number that varies has no counterpart")
    names = ("dim", "num_results", "skip")
    with tf.init_scope():
        points = tf.raw_ops.SobolSample(**dict(zip(names, known, strict=True)), dtype=node["dtype"])
    return tf.constant(points.numpy())
