"""How often integers occur, and sets of them, row by row."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.compositions.places import places_in
from entrepot.exporters.tensorflow.node import Node


@composed("SparseBincount")
def sparse_counts(node: Node, indices: Any, values: Any, shape: Any, size: Any, weights: Any) -> tf.Tensor:
    """Of each row of a sparse matrix, or of a sparse vector."""
    rank = indices.shape[1]
    if rank is None:
        node.refuse("is of a tensor whose rank is not known")
    rows = indices[:, 0] if rank == 2 else tf.zeros_like(indices[:, 0])
    found = _counted(node, rows, values, size, weights, shape[0] if rank == 2 else 1)
    return found if rank == 2 else found[0]


@composed("RaggedBincount")
def ragged_counts(node: Node, splits: Any, values: Any, size: Any, weights: Any) -> tf.Tensor:
    """Of each ragged row."""
    rows = places_in(splits, tf.range(tf.size(values, tf.int64)), side="right") - 1
    return _counted(node, tf.cast(rows, tf.int64), values, size, weights, tf.size(splits, tf.int64) - 1)


def _counted(node: Node, rows: Any, values: Any, size: Any, weights: Any, count: Any) -> tf.Tensor:
    kind = weights.dtype
    empty = tf.equal(tf.size(weights), 0)
    added = tf.where(
        empty, tf.ones(tf.shape(values), kind), tf.broadcast_to(_padded(weights, values), tf.shape(values))
    )
    wide, whole = tf.cast(size, tf.int64), tf.cast(count, tf.int64)
    places = tf.cast(values, tf.int64)
    inside = (places >= 0) & (places < wide)
    flat = rows * wide + tf.where(inside, places, 0)
    sums = tf.math.unsorted_segment_sum(tf.where(inside, added, tf.zeros_like(added)), flat, whole * wide)
    found = tf.reshape(sums, tf.stack([whole, wide]))
    return tf.cast(found > 0, kind) if node["binary_output"] else found


def _padded(weights: Any, values: Any) -> tf.Tensor:
    """As long as the values, where there are no weights at all."""
    return tf.pad(weights, [[0, tf.maximum(tf.size(values) - tf.size(weights), 0)]])


@composed("DenseCountSparseOutput")
def counts(node: Node, values: Any, weights: Any) -> tuple[tf.Tensor, ...]:
    """Those that occur in each row, as a sparse matrix."""
    if len(values.shape) == 1:
        return _sparse(node, None, tf.zeros_like(values, tf.int64), values, weights)
    count = tf.shape(values, tf.int64)[0]
    return _sparse(node, count, tf.repeat(tf.range(count), tf.shape(values)[1]), tf.reshape(values, [-1]), weights)


@composed("SparseCountSparseOutput")
def counts_of_stored(node: Node, indices: Any, values: Any, shape: Any, weights: Any) -> tuple[tf.Tensor, ...]:
    """The same of what a sparse matrix, or a sparse vector, stores."""
    if indices.shape[1] is None:
        node.refuse("is of a tensor whose rank is not known")
    if indices.shape[1] == 1:
        return _sparse(node, None, tf.zeros_like(indices[:, 0]), values, weights)
    return _sparse(node, shape[0], indices[:, 0], values, weights)


@composed("RaggedCountSparseOutput")
def counts_of_ragged(node: Node, splits: Any, values: Any, weights: Any) -> tuple[tf.Tensor, ...]:
    """The same of ragged rows."""
    rows = places_in(splits, tf.range(tf.size(values, tf.int64)), side="right") - 1
    return _sparse(node, tf.size(splits, tf.int64) - 1, tf.cast(rows, tf.int64), values, weights)


def _sparse(node: Node, count: Any, rows: Any, values: Any, weights: Any) -> tuple[tf.Tensor, ...]:
    flat, given = tf.cast(values, tf.int64), tf.reshape(weights, [-1])
    lowest, highest = node["minlength"], node["maxlength"]
    if highest >= 0:
        kept = flat < highest
        rows, flat = rows[kept], flat[kept]
        given = tf.cond(tf.size(given) > 0, lambda: tf.boolean_mask(given, kept[: tf.size(given)]), lambda: given)
    most = tf.maximum(tf.reduce_max(tf.concat([flat, [0]], 0)) + 1, lowest)
    width = tf.constant(highest, tf.int64) if highest >= 0 else most
    keys = rows * tf.maximum(width, 1) + flat
    ordered = tf.unique(tf.sort(keys))[0]
    where = places_in(ordered, keys)
    added = tf.cond(tf.size(given) > 0, lambda: given, lambda: tf.ones(tf.shape(flat), weights.dtype))
    sums = tf.math.unsorted_segment_sum(added, where, tf.size(ordered))
    sums = tf.ones_like(sums) if node["binary_output"] else sums
    row, column = ordered // tf.maximum(width, 1), ordered % tf.maximum(width, 1)
    if count is None:
        return column[:, None], sums, width[None]
    return tf.stack([row, column], 1), sums, tf.stack([count, width])


@composed("SetSize")
def set_sizes(node: Node, indices: Any, values: Any, shape: Any) -> tf.Tensor:
    """How many different ones are in each row."""
    steps = tf.math.cumprod(shape[:-1], exclusive=True, reverse=True)
    rows = tf.reduce_sum(indices[:, :-1] * steps, 1)
    numbers, places = tf.unique(values)
    keys, _ = tf.unique(rows * tf.maximum(tf.size(numbers, tf.int64), 1) + tf.cast(places, tf.int64))
    owners = keys // tf.maximum(tf.size(numbers, tf.int64), 1)
    count = tf.reduce_prod(shape[:-1])
    sums = tf.math.unsorted_segment_sum(tf.ones_like(owners, tf.int32), owners, count)
    return tf.reshape(sums, shape[:-1])
