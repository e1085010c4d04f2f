"""Integers with a scale and a zero point, for all or for each channel: the ``Uniform`` operators."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.compositions.quantised import plain, quantised
from entrepot.exporters.tensorflow.node import Node


def _along(node: Node, name: str, values: Any, rank: Any) -> Any:
    """One number, or one for each place along an axis."""
    axis = node[name]
    if axis < 0:
        return tf.reshape(values, [])
    if rank is None:
        node.refuse("is of a tensor whose rank is not known")
    shape = [1] * rank
    shape[axis] = -1
    return tf.reshape(values, shape)


@composed("UniformQuantize")
def to_integers(node: Node, x: Any, scales: Any, zeros: Any) -> Any:
    """Rounded, halves up."""
    scale, zero = (_along(node, "quantization_axis", each, x.shape.rank) for each in (scales, zeros))
    found = tf.floor(x * (1.0 / scale) + tf.cast(zero, x.dtype) + 0.5)
    low, high = (float(node[f"quantization_{end}_val"]) for end in ("min", "max"))
    return quantised(node, tf.clip_by_value(found, low, high))


@composed("UniformDequantize")
def to_numbers(node: Node, x: Any, scales: Any, zeros: Any) -> Any:
    """What each integer is above the zero point, times the scale."""
    scale, zero = (_along(node, "quantization_axis", each, x.shape.rank) for each in (scales, zeros))
    return tf.cast(tf.cast(plain(x), tf.int32) - zero, tf.float32) * scale


@composed("UniformQuantizedClipByValue")
def clipped(node: Node, x: Any, low: Any, high: Any, scales: Any, zeros: Any) -> Any:
    """Between bounds."""
    least, most = (_along(node, "quantization_axis", plain(each), x.shape.rank) for each in (low, high))
    return quantised(node, tf.minimum(tf.maximum(plain(x), least), most))


@composed("UniformRequantize")
def to_other_steps(node: Node, x: Any, scales: Any, zeros: Any, new_scales: Any, new_zeros: Any) -> Any:
    """With another scale and zero point."""
    rank = x.shape.rank
    scale, zero = (_along(node, "input_quantization_axis", each, rank) for each in (scales, zeros))
    new_scale, new_zero = (_along(node, "output_quantization_axis", each, rank) for each in (new_scales, new_zeros))
    values = tf.cast(plain(x), tf.int64) - tf.cast(zero, tf.int64)
    found = _rescaled(values, scale, new_scale) + tf.cast(new_zero, tf.float64)
    return quantised(node, _within(node, found))


def _rescaled(values: Any, scale: Any, new: Any) -> Any:
    """Rounded, halves up; the factor has the 31 bits that a fixed-point multiplier has."""
    factor = tf.cast(scale, tf.float64) / tf.cast(new, tf.float64)
    power = 2.0 ** (tf.floor(tf.math.log(factor) / tf.math.log(tf.constant(2.0, tf.float64))) + 1.0)
    kept = tf.floor(factor / power * 2.0**31 + 0.5) / 2.0**31 * power
    return tf.floor(tf.cast(values, tf.float64) * kept + 0.5)


def _within(node: Node, values: Any) -> Any:
    low, high = (float(node[f"output_quantization_{end}_val"]) for end in ("min", "max"))
    return tf.cast(tf.clip_by_value(values, tf.constant(low, tf.float64), tf.constant(high, tf.float64)), tf.int64)


@composed("UniformQuantizedAdd")
def added(
    node: Node, a: Any, b: Any, a_scales: Any, a_zeros: Any, b_scales: Any, b_zeros: Any, scales: Any, zeros: Any
) -> Any:
    """Both brought to the scale of the result first."""
    new, new_zero = (_along(node, "output_quantization_axis", each, a.shape.rank) for each in (scales, zeros))
    total: Any = tf.cast(new_zero, tf.float64)
    for side, x, scale, zero in (("lhs", a, a_scales, a_zeros), ("rhs", b, b_scales, b_zeros)):
        own, own_zero = (_along(node, f"{side}_quantization_axis", each, x.shape.rank) for each in (scale, zero))
        total += _rescaled(tf.cast(plain(x), tf.int64) - tf.cast(own_zero, tf.int64), own, new)
    return quantised(node, _within(node, total))


@composed("UniformQuantizedDot")
def product(
    node: Node, a: Any, b: Any, a_scales: Any, a_zeros: Any, b_scales: Any, b_zeros: Any, scales: Any, zeros: Any
) -> Any:
    """Of integers, exactly, then brought to the scale of the result."""
    left = tf.cast(plain(a), tf.int32) - tf.reshape(a_zeros, [])
    right = tf.cast(plain(b), tf.int32) - b_zeros
    found = _rescaled(left @ right, tf.reshape(a_scales, []) * b_scales, scales)
    return quantised(node, _within(node, found + tf.cast(zeros, tf.float64)))


@composed("UniformQuantizedDotHybrid")
def product_of_numbers(node: Node, a: Any, b: Any, scales: Any, zeros: Any) -> Any:
    """Of numbers, each row of which is rounded to 256 steps between its least and largest, with integers."""
    low = tf.minimum(tf.reduce_min(a, 1, keepdims=True), 0.0)
    high = tf.maximum(tf.reduce_max(a, 1, keepdims=True), 0.0)
    scale = tf.where(high > low, (high - low) / 255.0, 1.0)
    zero = tf.clip_by_value(tf.round(-128.0 - low / scale), -128.0, 127.0)
    steps = tf.clip_by_value(tf.round(a / scale) + zero, -128.0, 127.0)
    found = tf.cast(steps - zero, tf.int32) @ (tf.cast(plain(b), tf.int32) - zeros)
    return tf.cast(found, tf.float32) * (scale * scales)
