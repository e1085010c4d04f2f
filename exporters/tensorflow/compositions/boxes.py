"""Boxes of many classes, and boxes whose overlaps are given."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.node import Node


@composed("NonMaxSuppressionWithOverlaps")
def by_overlaps(node: Node, overlaps: Any, scores: Any, most: Any, threshold: Any, least: Any) -> tf.Tensor:
    """One after the other, the best first, those that overlap no box that was taken before."""
    order = tf.argsort(scores, direction="DESCENDING", stable=True)
    ranked = tf.gather(tf.gather(overlaps, order), order, axis=1)
    good = tf.gather(scores, order) > least
    count = tf.size(scores)

    def turn(at: Any, kept: Any) -> Any:
        beaten = tf.reduce_any(kept & (ranked[at] > threshold))
        room = tf.math.count_nonzero(kept, dtype=tf.int32) < most
        return at + 1, kept | (tf.equal(tf.range(count), at) & good[at] & ~beaten & room)

    kept = tf.while_loop(lambda at, _: at < count, turn, (0, tf.zeros_like(good)))[1]
    return order[kept]


@composed("ExtractGlimpse", "ExtractGlimpseV2")
def glimpse(node: Node, images: Any, size: Any, offsets: Any) -> tf.Tensor:
    """A window of each image around a point; zeros are what is beyond the image."""
    if node["uniform_noise"] and node.get("noise", "uniform") != "zero":
        node.refuse("fills what is beyond the image with noise")
    sizes, wanted = tf.cast(tf.shape(images)[1:3], tf.float32), tf.cast(size, tf.float32)
    place = offsets * sizes if node["normalized"] else offsets
    as_corner = node.op.endswith("V2") and not (node["centered"] and node["normalized"])
    if node["centered"]:
        place = (place if as_corner else place / 2) + sizes / 2
    first = tf.cast(place if as_corner else place - wanted / 2, tf.int32)
    rows = first[:, 0, None] + tf.range(size[0])
    columns = first[:, 1, None] + tf.range(size[1])
    inside = _within(rows, tf.shape(images)[1])[:, :, None] & _within(columns, tf.shape(images)[2])[:, None, :]
    safe_rows = tf.clip_by_value(rows, 0, tf.shape(images)[1] - 1)
    safe_columns = tf.clip_by_value(columns, 0, tf.shape(images)[2] - 1)
    cut = tf.gather(tf.gather(images, safe_rows, axis=1, batch_dims=1), safe_columns, axis=2, batch_dims=1)
    return tf.where(inside[..., None], cut, tf.zeros_like(cut))


def _within(places: Any, size: Any) -> tf.Tensor:
    return (places >= 0) & (places < size)


def softly(
    node: Node, boxes: Any, scores: Any, most: Any, overlap: Any, least: Any, sigma: Any
) -> tuple[tf.Tensor, ...]:
    """The best first, each of which lowers the scores of those that it overlaps; Bodla and others, 2017."""
    weights = _lowering(boxes, overlap, sigma)
    low = tf.constant(-float("inf"), scores.dtype)
    own = tf.range(tf.size(scores))
    start = tf.where(scores > least, scores, low)
    places = tf.TensorArray(tf.int32, size=most, element_shape=[])
    values = tf.TensorArray(scores.dtype, size=most, element_shape=[])

    def going(at: Any, left: Any, *_: Any) -> Any:
        return (at < most) & (tf.reduce_max(tf.concat([left, low[None]], 0)) > low)

    def turn(at: Any, left: Any, places: Any, values: Any) -> Any:
        best = tf.argmax(left, output_type=tf.int32)
        value = left[best]
        lowered = tf.where(left > low, left * weights[best], low)
        after = tf.where(tf.equal(own, best) | (lowered <= least), low, lowered)
        return at + 1, after, places.write(at, best), values.write(at, value)

    count, _, places, values = tf.while_loop(going, turn, (0, start, places, values))
    inside = tf.range(most) < count
    chosen, kept = tf.where(inside, places.stack(), 0), tf.where(inside, values.stack(), tf.zeros([], scores.dtype))
    if not node["pad_to_max_output_size"]:
        chosen, kept = chosen[:count], kept[:count]
    return chosen, kept, count


def _lowering(boxes: Any, overlap: Any, sigma: Any) -> tf.Tensor:
    """What the score of one box is multiplied by where another is taken."""
    low, high = tf.minimum(boxes[:, :2], boxes[:, 2:]), tf.maximum(boxes[:, :2], boxes[:, 2:])
    areas = tf.reduce_prod(high - low, 1)
    sides = tf.minimum(high[:, None], high) - tf.maximum(low[:, None], low)
    common = tf.reduce_prod(tf.maximum(sides, 0), 2)
    shares = tf.math.divide_no_nan(common, areas[:, None] + areas - common)
    shares = tf.where((areas[:, None] > 0) & (areas > 0), shares, 0)
    soft = tf.exp(-0.5 / tf.where(sigma > 0, sigma, 1) * shares * shares)
    return tf.where(sigma > 0, soft, tf.where(shares <= overlap, tf.ones_like(soft), 0))
