"""Operators that graph rewriters of TensorFlow made of several."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.node import Node


@composed("FusedPadConv2D")
def padded_convolution(node: Node, x: Any, paddings: Any, weight: Any) -> tf.Tensor:
    """An image with its mirror image around it, convolved."""
    return _convolved(node, x, paddings, weight)


@composed("FusedResizeAndPadConv2D")
def resized_convolution(node: Node, x: Any, size: Any, paddings: Any, weight: Any) -> tf.Tensor:
    """The same for an image that is resized before."""
    corners = node["resize_align_corners"]
    resized = tf.raw_ops.ResizeBilinear(images=x, size=size, align_corners=corners)
    return _convolved(node, tf.cast(resized, x.dtype), paddings, weight)


def _convolved(node: Node, x: Any, paddings: Any, weight: Any) -> tf.Tensor:
    wide = tf.raw_ops.MirrorPad(input=x, paddings=paddings, mode=node["mode"])
    return tf.raw_ops.Conv2D(input=wide, filter=weight, strides=node["strides"], padding=node["padding"])


@composed("ApproxTopK")
def top(node: Node, x: Any) -> Any:
    """The largest or the smallest along an axis."""
    rank, axis = len(x.shape), node["reduction_dimension"] % len(x.shape)
    order = [*(each for each in range(rank) if each != axis), axis]
    back = [order.index(each) for each in range(rank)]
    turned = tf.transpose(x, order)
    values, places = tf.math.top_k(turned if node["is_max_k"] else -turned, node["k"])
    values = values if node["is_max_k"] else -values
    return tf.transpose(values, back), tf.transpose(places, back)


@composed("NearestNeighbors")
def nearest(node: Node, points: Any, centres: Any, k: Any) -> Any:
    """The squared distances to the nearest centres, and which those are."""
    apart = tf.reduce_sum(points**2, 1, keepdims=True) - 2 * points @ tf.transpose(centres)
    distances = apart + tf.reduce_sum(centres**2, 1)
    count = tf.minimum(tf.cast(k, tf.int32), tf.shape(centres)[0])
    values, places = tf.math.top_k(-distances, count)
    return tf.cast(places, tf.int64), -values
