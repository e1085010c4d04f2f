"""Layers by the operators that they are another form of."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.node import Node


@composed("Conv")
def convolution(node: Node, x: Any, weight: Any) -> tf.Tensor:
    """In two or three dimensions, by the rank of the image."""
    rank = x.shape.rank
    if rank not in (4, 5) or node["batch_dims"] != 1:
        node.refuse("of images that are neither flat nor of three dimensions, or of many batches, has no counterpart")
    first = node["data_format"] == "CHANNELS_FIRST"
    form = {4: ("NHWC", "NCHW"), 5: ("NDHWC", "NCDHW")}[rank][first]
    gaps = node["dilations"] or [1] * rank
    how = {"strides": node["strides"], "padding": node["padding"], "dilations": gaps, "data_format": form}
    if rank == 4:
        return tf.raw_ops.Conv2D(input=x, filter=weight, explicit_paddings=node["explicit_paddings"], **how)
    if node["padding"] == "EXPLICIT":
        node.refuse("with explicit padding of three dimensions has no counterpart")
    return tf.raw_ops.Conv3D(input=x, filter=weight, **how)


@composed("ComputeAccidentalHits")
def hits(node: Node, classes: Any, sampled: Any) -> tuple[tf.Tensor, ...]:
    """Where a class that is right was drawn among those that are to be wrong."""
    own = tf.range(tf.size(sampled))
    later = (sampled[:, None] == sampled) & (own[:, None] < own)
    same = (classes[..., None] == sampled) & ~tf.reduce_any(later, 1)
    found = tf.where(same)
    weights = tf.fill(tf.shape(found)[:1], float(np.finfo(np.float32).min))
    return tf.cast(found[:, 0], tf.int32), found[:, 2], weights


@composed("IsotonicRegression")
def isotonic(node: Node, rows: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """The nearest rows that never rise: the least, over beginnings, of the largest mean up to any end."""
    count = tf.shape(rows)[1]
    sums = tf.pad(tf.cumsum(tf.cast(rows, tf.float64), 1), [[0, 0], [1, 0]])
    own = tf.range(count)
    lengths = tf.cast(own - own[:, None] + 1, tf.float64)
    means = (sums[:, None, 1:] - sums[:, :-1, None]) / tf.where(lengths > 0, lengths, 1.0)
    low, high = tf.constant(-np.inf, tf.float64), tf.constant(np.inf, tf.float64)
    after = own >= own[:, None]
    largest = tf.where(after, means, low)
    ending = tf.reverse(_running(tf.reverse(largest, [2]), low), [2])
    found = tf.reduce_min(tf.where(after, ending, high), 1)
    result = tf.cast(found, node["output_dtype"])
    steps = tf.cast(found[:, 1:] != found[:, :-1], tf.int32)
    return result, tf.pad(tf.cumsum(steps, 1), [[0, 0], [1, 0]])


def _running(x: Any, least: Any) -> tf.Tensor:
    """The largest so far along the last axis."""
    own = tf.range(tf.shape(x)[-1])
    return tf.reduce_max(tf.where(own[:, None] >= own, x[..., None, :], least), -1)
