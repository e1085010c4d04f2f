"""Gradients of pooling."""

from __future__ import annotations

import math
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


@composed("MaxPool3DGrad")
def of_maxima_of_volumes(node: Node, x: Any, y: Any, dy: Any) -> tf.Tensor:
    """To all of the largest of each window."""
    return _as_volumes(node, _to_largest, x, y, dy)


@composed("MaxPool3DGradGrad")
def of_maxima_of_volumes_again(node: Node, x: Any, y: Any, dy: Any) -> tf.Tensor:
    """What is at the first of the largest of each window."""
    return _as_volumes(node, _at_largest, x, y, dy)


def _to_largest(places: Any, windows: Any, x: Any, y: Any, dy: Any) -> tf.Tensor:
    given = tf.where((windows == y[..., None, :]) & (places >= 0), dy[..., None, :], tf.zeros_like(windows))
    flat = tf.math.unsorted_segment_sum(tf.reshape(given, [-1]), tf.reshape(places, [-1]), tf.size(x))
    return tf.reshape(flat, tf.shape(x))


def _at_largest(places: Any, windows: Any, x: Any, y: Any, dy: Any) -> tf.Tensor:
    found = tf.argmax(tf.where(places >= 0, windows, windows.dtype.min), -2)
    one = tf.one_hot(found, tf.shape(places)[4], axis=4, dtype=places.dtype)
    return tf.gather(tf.reshape(dy, [-1]), tf.reduce_sum(one * places, -2))


def _as_volumes(node: Node, function: Any, x: Any, y: Any, dy: Any) -> tf.Tensor:
    """With channels last, and with the elements of each window, and where they are in the image, along an axis."""
    order = [0, 2, 3, 4, 1] if _first(node) else [0, 1, 2, 3, 4]
    x, y, dy = (tf.transpose(each, order) for each in (x, y, dy))
    sizes, steps = ([1, *(node[name][axis] for axis in _spatial(node, 5)), 1] for name in ("ksize", "strides"))
    how = {"ksizes": sizes, "strides": steps, "padding": node["padding"]}
    numbers = tf.reshape(tf.range(1, tf.size(x) + 1), tf.shape(x))  # what is beyond the image is 0
    shape = tf.concat([tf.shape(y)[:4], [math.prod(sizes)], tf.shape(x)[4:]], 0)
    places, windows = (
        tf.reshape(_raw.ExtractVolumePatches(input=each, **how), shape) for each in (tf.cast(numbers, tf.float64), x)
    )
    found = function(tf.cast(places, tf.int32) - 1, windows, x, y, dy)
    return tf.transpose(found, _inverse(order))


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


@composed("Dilation2DBackpropInput", "Dilation2DBackpropFilter")
def of_dilation(node: Node, x: Any, weight: Any, dy: Any) -> tf.Tensor:
    """To the first of the largest sums of an element and what the filter has for it."""
    size = int(weight.shape[0]) * int(weight.shape[1])
    how = {
        "ksizes": [1, *weight.shape[:2], 1], "strides": node["strides"], "rates": node["rates"],
        "padding": node["padding"],
    }  # fmt: skip
    numbers = tf.reshape(tf.range(1, tf.size(x) + 1), tf.shape(x))
    shape = tf.concat([tf.shape(dy)[:3], [size], tf.shape(x)[3:]], 0)
    places, windows = (
        tf.reshape(_raw.ExtractImagePatches(images=each, **how), shape) for each in (tf.cast(numbers, tf.float64), x)
    )
    sums = windows + tf.reshape(weight, [size, -1])
    found = tf.argmax(tf.where(places > 0, sums, sums.dtype.min), -2)
    one = tf.one_hot(found, size, axis=3, dtype=dy.dtype)
    if node.op.endswith("Filter"):
        return tf.reshape(tf.einsum("nyxkc,nyxc->kc", one, dy), tf.shape(weight))
    owners = tf.cast(tf.reduce_sum(tf.cast(one, tf.float64) * places, -2), tf.int32) - 1
    flat = tf.math.unsorted_segment_sum(tf.reshape(dy, [-1]), tf.reshape(owners, [-1]), tf.size(x))
    return tf.reshape(flat, tf.shape(x))


@composed("FractionalAvgPoolGrad")
def of_fractional_means(node: Node, shape: Any, dy: Any, rows: Any, columns: Any) -> tf.Tensor:
    """Spread over each cell."""
    high, wide = (_cells(node, edges, shape[at], dy.dtype) for at, edges in ((1, rows), (2, columns)))
    counts = tf.reduce_sum(high, 1)[:, None] * tf.reduce_sum(wide, 1)
    return tf.einsum("nyxc,yh,xw->nhwc", dy / counts[..., None], high, wide)


@composed("FractionalMaxPoolGrad")
def of_fractional_maxima(node: Node, x: Any, y: Any, dy: Any, rows: Any, columns: Any) -> tf.Tensor:
    """To the first of the largest of each cell."""
    high, wide = (_cells(node, edges, tf.shape(x)[at], x.dtype) for at, edges in ((1, rows), (2, columns)))
    cells = high[:, None, :, None] * wide[None, :, None, :]
    inside = tf.where(cells[None, ..., None] > 0, x[:, None, None], x.dtype.min)
    flat = tf.reshape(inside, tf.concat([tf.shape(y)[:3], [-1], tf.shape(y)[3:]], 0))
    one = tf.one_hot(tf.argmax(flat, 3), tf.shape(flat)[3], axis=3, dtype=dy.dtype)
    return tf.reshape(tf.reduce_sum(one * dy[:, :, :, None], [1, 2]), tf.shape(x))


def _cells(node: Node, edges: Any, size: Any, dtype: Any) -> tf.Tensor:
    """[cells, size]: which elements are in each."""
    own = tf.range(tf.cast(size, tf.int64))
    ends = edges[1:, None] + (1 if node["overlapping"] else 0)
    return tf.cast((own >= edges[:-1, None]) & (own < ends), dtype)
