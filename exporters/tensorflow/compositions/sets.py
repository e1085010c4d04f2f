"""Rows as sets: what two of them have in common, and what one has that the other lacks."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.compositions.places import places_in
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


@composed("DenseToSparseSetOperation", "SparseToSparseSetOperation")
def of_stored(node: Node, *given: Any) -> tuple[tf.Tensor, ...]:
    """The same where one set of each two, or both, are rows of a sparse tensor."""
    if given[1].dtype == tf.string:
        node.refuse("of text has no counterpart")
    way, first = node["set_operation"], given[:-3]
    if len(first) == 1:
        sizes, values = tf.shape(first[0], tf.int64)[:-1], tf.reshape(first[0], [-1])
        rows = tf.repeat(tf.range(tf.reduce_prod(sizes)), tf.shape(first[0])[-1])
    else:
        sizes, values = first[2][:-1], first[1]
        rows = _rows_of(first[0], sizes)
    numbers = tf.unique(tf.sort(tf.concat([values, given[-2]], 0)))[0]
    count = tf.maximum(tf.size(numbers, tf.int64), 1)
    one, other = (
        tf.unique(tf.sort(row * count + places_in(numbers, each, kind=tf.int64)))[0]
        for row, each in ((rows, values), (_rows_of(given[-3], sizes), given[-2]))
    )
    one, other = (other, one) if way == "b-a" else (one, other)
    common = tf.reduce_any(one[:, None] == other, 1)
    if way == "union":
        keys = tf.unique(tf.sort(tf.concat([one, other], 0)))[0]
    else:
        keys = tf.boolean_mask(one, common if way == "intersection" else ~common)
    row = keys // count
    place = tf.range(tf.size(keys, tf.int64)) - places_in(row, row, kind=tf.int64)
    lead = row[:, None] // tf.math.cumprod(sizes, exclusive=True, reverse=True) % tf.maximum(sizes, 1)
    most = tf.reduce_max(tf.concat([place + 1, [0]], 0))
    indices = tf.concat([lead, place[:, None]], 1)
    return indices, tf.gather(numbers, keys % count), tf.concat([sizes, most[None]], 0)


def _rows_of(indices: Any, sizes: Any) -> tf.Tensor:
    return tf.reduce_sum(indices[:, :-1] * tf.math.cumprod(sizes, exclusive=True, reverse=True), 1)
