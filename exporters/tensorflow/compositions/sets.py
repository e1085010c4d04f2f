"""Rows as sets: what two of them have in common, and what one has that the other lacks."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.node import Node


@composed("DenseToDenseSetOperation")
def of_rows(node: Node, one: Any, other: Any) -> tuple[tf.Tensor, ...]:
    """Of each two rows, as a sparse tensor whose rows are in order and without repetition."""
    if one.dtype == tf.string:
        node.refuse("of text has no counterpart")
    way, sizes = node["set_operation"], tf.shape(one, tf.int64)[:-1]
    first, second = (tf.reshape(each, [-1, tf.shape(each)[-1]]) for each in (one, other))
    if way == "b-a":
        first, second = second, first
    items = tf.sort(tf.concat([first, second], 1) if way == "union" else first)
    fresh = tf.concat([tf.ones_like(items[:, :1], tf.bool), items[:, 1:] != items[:, :-1]], 1)
    common = tf.reduce_any(items[:, :, None] == second[:, None, :], 2)
    kept = fresh & {"intersection": common, "union": tf.ones_like(fresh)}.get(way, ~common)
    place = tf.cumsum(tf.cast(kept, tf.int64), 1, exclusive=True)
    where = tf.where(kept)
    steps = tf.math.cumprod(sizes, exclusive=True, reverse=True)
    lead = where[:, :1] // steps % tf.maximum(sizes, 1)
    counts = tf.reduce_sum(tf.cast(kept, tf.int64), 1)
    most = tf.reduce_max(tf.concat([counts, tf.zeros([1], tf.int64)], 0))
    indices = tf.concat([lead, tf.gather_nd(place, where)[:, None]], 1)
    return indices, tf.boolean_mask(items, kept), tf.concat([sizes, most[None]], 0)
