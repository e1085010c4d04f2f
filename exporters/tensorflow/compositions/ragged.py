"""Rows of rows of different lengths: padded, made sparse, and taken by their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.compositions.places import places_in
from entrepot.exporters.tensorflow.node import Node


@composed("RaggedTensorToSparse")
def to_sparse(node: Node, *inputs: Any) -> tuple[tf.Tensor, ...]:
    """Every element with its place in each level of rows."""
    *splits, values = inputs
    dense = tf.shape(values, tf.int64)
    count = tf.reduce_prod(dense[1:])
    place = tf.range(dense[0] * count)
    levels = _levels(splits, place // count)
    inner = (place % count)[:, None] // tf.math.cumprod(dense[1:], exclusive=True, reverse=True) % dense[1:]
    sizes = [tf.shape(splits[0], tf.int64)[0] - 1, *(_longest(each) for each in splits)]
    return (
        tf.concat([tf.stack(levels, 1), inner], 1),
        tf.reshape(values, [-1]),
        tf.concat([tf.stack(sizes), dense[1:]], 0),
    )


@composed("RaggedGather")
def gathered(node: Node, *inputs: Any) -> list[tf.Tensor]:
    """Rows by their numbers; further axes of the numbers are further levels, whose rows have one length each."""
    *splits, values, indices = inputs
    sizes, kind = tf.shape(indices, splits[0].dtype), splits[0].dtype
    found = [tf.range(tf.reduce_prod(sizes[:axis]) + 1) * sizes[axis] for axis in range(1, indices.shape.rank)]
    rows = tf.reshape(tf.cast(indices, kind), [-1])
    for each in splits:
        starts, ends = tf.gather(each[:-1], rows), tf.gather(each[1:], rows)
        own, rows = tf.raw_ops.RaggedRange(starts=starts, limits=ends, deltas=tf.ones([], kind), Tsplits=kind)
        found.append(own)
    return [*found[len(found) - node["OUTPUT_RAGGED_RANK"] :], tf.gather(values, rows)]


def padded(node: Node, shape: Any, values: Any, default: Any, *partitions: Any) -> tf.Tensor:
    """With a value where a row is shorter than the longest of its level, or cut off at a length that is asked for."""
    kinds = node["row_partition_types"]
    if set(kinds) == {"ROW_SPLITS"}:
        splits = [tf.cast(each, tf.int64) for each in partitions]
    elif kinds[0] == "FIRST_DIM_SIZE" and set(kinds[1:]) == {"VALUE_ROWIDS"}:
        splits = _splits(tf.cast(partitions[0], tf.int64), [tf.cast(each, tf.int64) for each in partitions[1:]])
    else:
        node.refuse(f"of rows that are told by {', '.join(sorted(set(kinds)))} has no counterpart")
    places = tf.stack(_levels(splits, tf.range(tf.shape(values, tf.int64)[0])), 1)
    own = tf.stack([tf.shape(splits[0], tf.int64)[0] - 1, *(_longest(each) for each in splits)])
    wanted = tf.cast(tf.broadcast_to(shape, [len(splits) + values.shape.rank]), tf.int64)[: len(splits) + 1]
    sizes = tf.where(wanted < 0, own, wanted)
    fits = tf.reduce_all(places < tf.minimum(sizes, tf.concat([own[:1], sizes[1:]], 0)), 1)
    room = tf.broadcast_to(default, tf.concat([sizes, tf.shape(values, tf.int64)[1:]], 0))
    return tf.tensor_scatter_nd_update(room, places[fits], values[fits])


def _levels(splits: Sequence[Any], place: Any) -> list[tf.Tensor]:
    """The row of each element, and its place in it at each level; what is in no row is behind the last one."""
    found = []
    for each in reversed(splits):
        row = places_in(each[1:], tf.cast(place, each.dtype), side="right")
        found.append(tf.cast(place, tf.int64) - tf.cast(tf.gather(each, row), tf.int64))
        place = tf.cast(row, tf.int64)
    return [place, *reversed(found)]


def _longest(splits: Any) -> tf.Tensor:
    return tf.cast(tf.reduce_max(tf.concat([splits[1:] - splits[:-1], tf.zeros([1], splits.dtype)], 0)), tf.int64)


def _splits(count: Any, rows: Sequence[Any]) -> list[tf.Tensor]:
    """Where the rows of each level begin and end, of the row of each element."""
    found = []
    for each in rows:
        lengths = tf.math.unsorted_segment_sum(tf.ones_like(each), each, count)
        found.append(tf.concat([[0], tf.cumsum(lengths)], 0))
        count = tf.shape(each, tf.int64)[0]
    return found


@composed("RaggedFillEmptyRows")
def filled(node: Node, rows: Any, values: Any, count: Any, default: Any) -> tuple[tf.Tensor, ...]:
    """As the rows of a sparse matrix."""
    places = tf.stack([rows, tf.zeros_like(rows)], 1)
    shape = tf.stack([count, tf.ones_like(count)])
    indices, *rest = tf.raw_ops.SparseFillEmptyRows(
        indices=places, values=values, dense_shape=shape, default_value=default
    )
    return (indices[:, 0], *rest)
