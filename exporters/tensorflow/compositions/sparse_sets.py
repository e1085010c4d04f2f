"""Sparse tensors joined, cut, compared and reduced, as their indices, values and shapes.

An index is one number: its place in the dense tensor, row by row.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.node import Node


def _keys(indices: Any, shape: Any) -> tf.Tensor:
    return tf.reduce_sum(indices * tf.math.cumprod(shape, exclusive=True, reverse=True), 1)


def _indices(keys: Any, shape: Any) -> tf.Tensor:
    steps = tf.math.cumprod(shape, exclusive=True, reverse=True)
    return (keys[:, None] // steps) % shape


def _merged(keys: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """The keys that there are, in order, and where each one went."""
    order = tf.argsort(keys, stable=True)
    found, places = tf.unique(tf.gather(keys, order))
    return found, tf.scatter_nd(order[:, None], places, tf.shape(places))


@composed("SparseAdd")
def added(
    node: Node, one: Any, first: Any, shape: Any, other: Any, second: Any, _: Any, threshold: Any
) -> tuple[tf.Tensor, ...]:
    """Values at the same place are added; sums of two below a threshold are left out."""
    keys, places = _merged(tf.concat([_keys(one, shape), _keys(other, shape)], 0))
    sums = tf.math.unsorted_segment_sum(tf.concat([first, second], 0), places, tf.size(keys))
    alone = tf.math.unsorted_segment_sum(tf.ones_like(places), places, tf.size(keys)) < 2
    kept = alone | (tf.abs(sums) >= threshold)
    return _indices(keys[kept], shape), sums[kept], shape


@composed("SparseSparseMaximum", "SparseSparseMinimum")
def compared(
    node: Node, one: Any, first: Any, shape: Any, other: Any, second: Any, _: Any
) -> tuple[tf.Tensor, tf.Tensor]:
    """The larger or the smaller of what is at each place, where nothing is zero."""
    keys, places = _merged(tf.concat([_keys(one, shape), _keys(other, shape)], 0))
    count, own = tf.size(keys), tf.size(first)
    sides = (
        tf.math.unsorted_segment_sum(values, part, count)
        for values, part in ((first, places[:own]), (second, places[own:]))
    )
    best = tf.maximum if node.op.endswith("Maximum") else tf.minimum
    return _indices(keys, shape), best(*sides)


@composed("SparseConcat")
def joined(node: Node, *inputs: Any) -> tuple[tf.Tensor, ...]:
    """One after the other along an axis."""
    count = node["N"]
    indices, values, shapes = inputs[:count], inputs[count : 2 * count], inputs[2 * count :]
    axis = node["concat_dim"] % int(shapes[0].shape[0])
    moved, before = [], tf.zeros([], tf.int64)
    for each, shape in zip(indices, shapes, strict=True):
        moved.append(each + before * tf.one_hot(axis, tf.size(shape), dtype=tf.int64))
        before += shape[axis]
    whole = tf.concat([shapes[0][:axis], before[None], shapes[0][axis + 1 :]], 0)
    every = tf.concat(moved, 0)
    order = tf.argsort(_keys(every, whole), stable=True)
    return tf.gather(every, order), tf.gather(tf.concat(values, 0), order), whole


@composed("SparseSlice")
def cut(node: Node, indices: Any, values: Any, shape: Any, start: Any, size: Any) -> tuple[tf.Tensor, ...]:
    """What lies in a part of the tensor."""
    inside = tf.reduce_all((indices >= start) & (indices < start + size), 1)
    return indices[inside] - start, values[inside], tf.maximum(tf.minimum(size, shape - start), 0)


@composed("SparseSplit")
def split(node: Node, axis: Any, indices: Any, values: Any, shape: Any) -> list[tf.Tensor]:
    """Parts of the tensor along an axis, the first ones longer by one where it does not come out even."""
    at = tf.get_static_value(axis)
    if at is None:
        node.refuse("splits an axis that varies")
    count, (size, rank) = node["num_split"], (shape[int(at)], int(shape.shape[0]))
    unit = tf.one_hot(int(at), rank, dtype=tf.int64)
    short, longer = size // count, size % count
    parts: list[list[tf.Tensor]] = [[], [], []]
    for number in range(count):
        start, end = (each * short + tf.minimum(tf.constant(each, tf.int64), longer) for each in (number, number + 1))
        inside = (indices[:, int(at)] >= start) & (indices[:, int(at)] < end)
        own = shape * (1 - unit) + unit * (end - start)
        for side, value in zip(parts, (indices[inside] - unit * start, values[inside], own), strict=True):
            side.append(value)
    return [each for side in parts for each in side]


@composed("SparseSoftmax")
def softmax(node: Node, indices: Any, values: Any, shape: Any) -> tf.Tensor:
    """Along the last axis, of what is stored."""
    rows, places = tf.unique(_keys(indices[:, :-1], shape[:-1]))
    count = tf.size(rows)
    powers = tf.exp(values - tf.gather(tf.math.unsorted_segment_max(values, places, count), places))
    return powers / tf.gather(tf.math.unsorted_segment_sum(powers, places, count), places)


@composed("SparseReduceSumSparse", "SparseReduceMaxSparse")
def reduced(node: Node, indices: Any, values: Any, shape: Any, axes: Any) -> tuple[tf.Tensor, ...]:
    """Of what is stored."""
    known, rank = tf.get_static_value(axes), shape.shape[0]
    if known is None or rank is None:
        node.refuse("reduces axes that vary")
    gone = {int(axis) % rank for axis in known.ravel()}
    left = [axis for axis in range(rank) if axis not in gone]
    keys, places = _merged(_keys(tf.gather(indices, left, axis=1), tf.gather(shape, left)))
    sums = node.op == "SparseReduceSumSparse"
    merge = tf.math.unsorted_segment_sum if sums else tf.math.unsorted_segment_max
    found, sizes = _indices(keys, tf.gather(shape, left)), tf.gather(shape, left)
    if node["keep_dims"]:
        columns = tf.unstack(found, len(left), 1)
        nothing = tf.zeros_like(keys)
        found = tf.stack([columns.pop(0) if axis in left else nothing for axis in range(rank)], 1)
        sizes = tf.where(tf.constant([axis in gone for axis in range(rank)]), tf.ones_like(shape), shape)
    return found, merge(values, places, tf.size(keys)), sizes


@composed("SparseAddGrad")
def of_added(node: Node, dy: Any, one: Any, other: Any, whole: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """What each stored value contributed to."""
    shape = 1 + tf.maximum(_largest(one), tf.maximum(_largest(other), _largest(whole)))
    return tuple(_matched(dy, _keys(whole, shape), _keys(each, shape)) for each in (one, other))


@composed("SparseSliceGrad")
def of_cut(node: Node, dy: Any, indices: Any, start: Any, cut: Any) -> tf.Tensor:
    """Where it was cut out of, zeros elsewhere."""
    moved = cut + start
    shape = 1 + tf.maximum(_largest(indices), _largest(moved))
    return _matched(dy, _keys(moved, shape), _keys(indices, shape))


def _largest(indices: Any) -> tf.Tensor:
    return tf.reduce_max(tf.concat([indices, tf.zeros_like(indices[:1])], 0), 0)


def _matched(values: Any, keys: Any, wanted: Any) -> tf.Tensor:
    same = tf.cast(tf.equal(wanted[:, None], keys), values.dtype)
    return tf.reduce_sum(same * values, 1)


@composed("SparseFillEmptyRowsGrad", "RaggedFillEmptyRowsGrad")
def of_filled(node: Node, places: Any, dy: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Of values, and of what empty rows were filled with."""
    given = tf.gather(dy, places)
    stored = tf.scatter_nd(places[:, None], tf.ones_like(places), tf.shape(dy, tf.int64))
    return given, tf.reduce_sum(tf.where(stored > 0, tf.zeros_like(dy), dy))
