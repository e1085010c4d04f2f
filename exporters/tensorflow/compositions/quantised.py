"""Arithmetic on integers that stand for numbers between bounds, which every result brings with it.

The formulas are those of TensorFlow's ``quantization_utils.h``, in the types that it computes them in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.node import Node

_raw = tf.raw_ops
_PLAIN = {tf.quint8: tf.uint8, tf.qint8: tf.int8, tf.quint16: tf.uint16, tf.qint16: tf.int16, tf.qint32: tf.int32}


def plain(x: Any) -> Any:
    """The integers themselves."""
    return tf.bitcast(x, _PLAIN[x.dtype]) if x.dtype in _PLAIN else x


def quantised(node: Node, x: Any, at: int = 0) -> Any:
    """Integers as a result of a node."""
    kind = node.operation.outputs[at].dtype
    return tf.bitcast(tf.cast(x, _PLAIN[kind]), kind)


def bounded(x: Any, kind: Any) -> Any:
    """Within what a type of integers holds."""
    limits = np.iinfo(_PLAIN[kind].as_numpy_dtype)
    return tf.clip_by_value(x, tf.cast(limits.min, x.dtype), tf.cast(limits.max, x.dtype))


def _scalar(x: Any) -> Any:
    return tf.reshape(x, [])


def _whole(x: Any) -> Any:
    """Rounded, halves away from zero."""
    return tf.where(x < 0, -tf.floor(0.5 - x), tf.floor(x + 0.5))


def _level(number: float, low: Any, high: Any, kind: Any) -> Any:
    """The integer that a number is, in float64: ``FloatToQuantizedUnclamped``."""
    limits = np.iinfo(_PLAIN[kind].as_numpy_dtype)
    least, most = (tf.cast(_scalar(each), tf.float64) for each in (low, high))
    steps = 2.0**limits.bits
    scale = steps / ((most - least) * (steps / (steps - 1.0)))
    found = _whole(number * scale) - _whole(least * scale) + float(limits.min)
    return tf.where(tf.equal(least, most), tf.zeros_like(found), found)


def _number(x: Any, low: Any, high: Any, kind: Any) -> Any:
    """The number that an integer is: ``QuantizedToFloat``."""
    limits = np.iinfo(_PLAIN[kind].as_numpy_dtype)
    least, most = (tf.cast(_scalar(each), tf.float64) for each in (low, high))
    steps = 2.0**limits.bits
    scale = (most - least) * (steps / (steps - 1.0)) / steps
    start = tf.where(tf.equal(least, most), least, _whole(least / scale) * scale)
    return tf.cast(start + (tf.cast(x, tf.float64) - float(limits.min)) * scale, tf.float32)


def _product_bounds(node: Node, bounds: Any) -> tuple[Any, Any]:
    """Of products of integers of two types as integers of 32 bits."""
    one = tf.constant(1.0)
    for (low, high), tensor in zip(bounds, node.operation.inputs[:2], strict=False):
        limits = np.iinfo(_PLAIN[tensor.dtype].as_numpy_dtype)
        one *= (_scalar(high) - _scalar(low)) / float(limits.max - limits.min)
    return one * float(-(2**31)), one * float(2**31 - 1)


def _centred(node: Node, x: Any, bounds: Any, at: int) -> Any:
    """Less the integer that zero is."""
    kind = node.operation.inputs[at].dtype
    zero = tf.cast(bounded(_level(0.0, bounds[0], bounds[1], kind), kind), tf.int32)
    return tf.cast(plain(x), tf.int32) - zero


@composed("QuantizedMatMul")
def product(node: Node, a: Any, b: Any, *bounds: Any) -> Any:
    """Of integers, exactly."""
    pairs = (bounds[:2], bounds[2:])
    left, right = (_centred(node, each, pairs[at], at) for at, each in enumerate((a, b)))
    found = tf.matmul(left, right, transpose_a=node["transpose_a"], transpose_b=node["transpose_b"])
    return quantised(node, found), *_product_bounds(node, pairs)


@composed("QuantizedMul")
def multiplied(node: Node, a: Any, b: Any, *bounds: Any) -> Any:
    """Element by element, exactly."""
    pairs = (bounds[:2], bounds[2:])
    left, right = (_centred(node, each, pairs[at], at) for at, each in enumerate((a, b)))
    return quantised(node, left * right), *_product_bounds(node, pairs)


@composed("QuantizedConv2D")
def convolution(node: Node, x: Any, weight: Any, *bounds: Any) -> Any:
    """Of integers, exactly, as a product of patches with filters."""
    if set(node["dilations"]) != {1}:
        node.refuse("with gaps between the elements of the filter has no counterpart")
    size = [int(each) for each in weight.shape]
    image, filters = _centred(node, x, bounds[:2], 0), _centred(node, weight, bounds[2:], 1)
    patches = _raw.ExtractImagePatches(
        images=image, ksizes=[1, *size[:2], 1], strides=node["strides"], rates=[1, 1, 1, 1], padding=node["padding"]
    )
    flat = tf.reshape(patches, [-1, size[0] * size[1] * size[2]]) @ tf.reshape(filters, [-1, size[3]])
    shape = tf.concat([tf.shape(patches)[:3], [size[3]]], 0)
    return quantised(node, tf.reshape(flat, shape)), *_product_bounds(node, (bounds[:2], bounds[2:]))


@composed("QuantizedRelu", "QuantizedRelu6")
def rectified(node: Node, x: Any, low: Any, high: Any) -> Any:
    """Not below what zero is, and not above what six is."""
    kind = node.operation.inputs[0].dtype
    values = tf.cast(plain(x), tf.int32)
    values = tf.maximum(values, tf.cast(bounded(_level(0.0, low, high, kind), kind), tf.int32))
    if node.op.endswith("6"):
        values = tf.minimum(values, tf.cast(bounded(_level(6.0, low, high, kind), kind), tf.int32))
    return quantised(node, values), low, high


@composed("QuantizedReshape")
def reshaped(node: Node, x: Any, shape: Any, low: Any, high: Any) -> Any:
    """The same in another shape."""
    return quantised(node, tf.reshape(plain(x), shape)), low, high


@composed("QuantizedMaxPool")
def largest(node: Node, x: Any, low: Any, high: Any) -> Any:
    """Of each window."""
    how = {name: node[name] for name in ("ksize", "strides", "padding")}
    return quantised(node, _raw.MaxPool(input=tf.cast(plain(x), tf.float32), **how)), low, high


@composed("RequantizationRange")
def needed(node: Node, x: Any, low: Any, high: Any) -> Any:
    """The bounds of what there is, zero among them."""
    least, most = _extremes(node, x, low, high)
    return tf.minimum(least, 0.0), most


def _extremes(node: Node, x: Any, low: Any, high: Any) -> list[Any]:
    values, kind = plain(x), node.operation.inputs[0].dtype
    return [_number(reduce(values), low, high, kind) for reduce in (tf.reduce_min, tf.reduce_max)]


@composed("Requantize")
def moved(node: Node, x: Any, low: Any, high: Any, least: Any, most: Any) -> Any:
    """To other bounds, in fewer bits."""
    return _moved(node, x, low, high, least, most), least, most


@composed("QuantizeDownAndShrinkRange")
def shrunk(node: Node, x: Any, low: Any, high: Any) -> Any:
    """To the bounds of what there is."""
    least, most = _extremes(node, x, low, high)
    least, most = tf.minimum(least, 0.0), tf.maximum(most, 0.0)
    return _moved(node, x, low, high, least, most), least, most


def _moved(node: Node, x: Any, low: Any, high: Any, least: Any, most: Any) -> Any:
    """``RequantizeManyInNewRange``: with sixteen bits behind the point."""
    if node.operation.outputs[0].dtype != tf.quint8 or node.operation.inputs[0].dtype != tf.qint32:
        node.refuse("of types other than qint32 and quint8 has no counterpart")
    bottom, top, first, last = (_scalar(each) for each in (low, high, least, most))
    width = last - first
    share = tf.where(tf.equal(width, 0.0), 0.0, 255.0 / width)
    scale = tf.where(tf.equal(width, 0.0), 0.0, 255.0 * 65536.0 * (top - bottom) / width)
    start = tf.cast((bottom + top) / 2.0 * share * 65536.0, tf.int64)
    offset = tf.cast(tf.where(tf.equal(width, 0.0), 0.0, 65536.0 * (first * 255.0) / width), tf.int64)
    values = tf.bitwise.right_shift(tf.cast(plain(x), tf.int64) * tf.cast(scale, tf.int64), tf.constant(32, tf.int64))
    found = tf.bitwise.right_shift(values + start - offset + 32768, tf.constant(16, tf.int64))
    return quantised(node, tf.clip_by_value(found, tf.constant(0, tf.int64), tf.constant(255, tf.int64)))
