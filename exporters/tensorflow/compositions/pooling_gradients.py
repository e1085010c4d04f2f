"""Gradients of pooling."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.node import Node

_raw = tf.raw_ops


@composed("AvgPoolGrad", "AvgPool3DGrad")
def of_means(node: Node, shape: Any, dy: Any) -> tf.Tensor:
    """Spread over each window, by how much of it is inside the image; each channel is an image of its own."""
    rank = len(dy.shape)
    pick = _spatial(node, rank)
    sizes, steps = ([node[name][axis] for axis in pick] for name in ("ksize", "strides"))
    order = _channels_second(node, rank)
    turned = tf.transpose(dy, order)
    inner = tf.gather(shape, pick)
    images = tf.reshape(turned, tf.concat([[-1], tf.shape(turned)[2:], [1]], 0))
    ones = tf.ones([*sizes, 1, 1], dy.dtype)
    how = {"strides": [1, *steps, 1], "padding": node["padding"]}
    convolve, spread = (
        (_raw.Conv2D, _raw.Conv2DBackpropInput) if rank == 4 else (_raw.Conv3D, _raw.Conv3DBackpropInputV2)
    )
    counts = convolve(input=tf.ones(tf.concat([[1], inner, [1]], 0), dy.dtype), filter=ones, **how)
    whole = tf.concat([tf.shape(images)[:1], inner, [1]], 0)
    found = spread(input_sizes=whole, filter=ones, out_backprop=images / counts, **how)
    turned_shape = tf.gather(shape, order)
    return tf.transpose(tf.reshape(found, turned_shape), _inverse(order))


@composed("MaxPoolGrad", "MaxPoolGradV2")
def of_maxima(node: Node, x: Any, y: Any, dy: Any, *sizes: Any) -> tf.Tensor:
    """To the first of the largest of each window."""
    return _with_channels_last(node, lambda x, dy: _scattered(x, _places(node, x, sizes), dy), x, dy)


@composed("MaxPoolGradGrad", "MaxPoolGradGradV2")
def of_maxima_again(node: Node, x: Any, y: Any, dy: Any, *sizes: Any) -> tf.Tensor:
    """What is at the first of the largest of each window."""
    return _with_channels_last(
        node, lambda x, dy: tf.gather(tf.reshape(dy, [-1]), _places(node, x, sizes)), x, dy
    )  # fmt: skip


@composed("MaxPoolGradWithArgmax")
def of_maxima_at(node: Node, x: Any, dy: Any, places: Any) -> tf.Tensor:
    """To where the largest were."""
    return _scattered(x, _in_batch(node, x, places), dy)


@composed("MaxPoolGradGradWithArgmax")
def of_maxima_at_again(node: Node, x: Any, dy: Any, places: Any) -> tf.Tensor:
    """What is where the largest were."""
    return tf.gather(tf.reshape(dy, [-1]), _in_batch(node, x, places))


def _in_batch(node: Node, x: Any, places: Any) -> tf.Tensor:
    if node["include_batch_in_index"]:
        return places
    shape = tf.shape(x, places.dtype)
    first = tf.range(shape[0]) * tf.reduce_prod(shape[1:])
    return places + tf.reshape(first, [-1, 1, 1, 1])


def _places(node: Node, x: Any, sizes: Any) -> tf.Tensor:
    if node["padding"] == "EXPLICIT":
        node.refuse("with explicit padding has no counterpart")
    given = sizes or (node["ksize"], node["strides"])
    kernel, steps = (tf.get_static_value(tf.convert_to_tensor(each)) for each in given)
    if kernel is None or steps is None:
        node.refuse("has windows of a size that varies")
    pick = _spatial(node, 4)
    kernel, steps = ([1, *(int(each[axis]) for axis in pick), 1] for each in (kernel, steps))
    return _raw.MaxPoolWithArgmax(
        input=x, ksize=kernel, strides=steps, padding=node["padding"], include_batch_in_index=True,
    )[1]  # fmt: skip


def _scattered(x: Any, places: Any, dy: Any) -> tf.Tensor:
    count = tf.reduce_prod(tf.shape(x, places.dtype))
    flat = tf.math.unsorted_segment_sum(tf.reshape(dy, [-1]), tf.reshape(places, [-1]), count)
    return tf.reshape(flat, tf.shape(x))


def _with_channels_last(node: Node, function: Any, *images: Any) -> tf.Tensor:
    if not _first(node):
        return function(*images)
    return tf.transpose(function(*(tf.transpose(each, [0, 2, 3, 1]) for each in images)), [0, 3, 1, 2])


def _first(node: Node) -> bool:
    return node.get("data_format", "NHWC").startswith("NC")


def _spatial(node: Node, rank: int) -> list[int]:
    return list(range(2, rank)) if _first(node) else list(range(1, rank - 1))


def _channels_second(node: Node, rank: int) -> list[int]:
    return list(range(rank)) if _first(node) else [0, rank - 1, *range(1, rank - 1)]


def _inverse(order: list[int]) -> list[int]:
    return [order.index(axis) for axis in range(len(order))]
