"""Sequences put beside one another: the loss of connectionist temporal classification, and how far texts are apart."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.compositions.places import places_in
from entrepot.exporters.tensorflow.node import Node


@composed("CTCLoss")
def of_labels(node: Node, logits: Any, indices: Any, labels: Any, lengths: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """And its gradient; the last class is the blank."""
    if node["preprocess_collapse_repeated"] or not node["ctc_merge_repeated"]:
        node.refuse("that leaves repeated labels out, or apart, has no counterpart")
    batch = tf.shape(logits)[1]
    ends = tf.cast(indices[:, 1], tf.int32) + 1
    count = tf.maximum(tf.math.unsorted_segment_max(ends, indices[:, 0], batch), 0)
    shape = tf.stack([batch, tf.reduce_max(tf.concat([count, [1]], 0))])
    dense = tf.scatter_nd(tf.cast(indices, tf.int32), labels, shape)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = tf.nn.ctc_loss(dense, logits, count, lengths, logits_time_major=True, blank_index=-1)
    return loss, tape.gradient(loss, logits)


@composed("EditDistance")
def edits(
    node: Node, indices: Any, values: Any, shape: Any, true_indices: Any, true_values: Any, true_shape: Any
) -> tf.Tensor:
    """How many elements of a row have to be changed, dropped or added, all rows at once."""
    if values.dtype == tf.string:  # which is all the same to what follows, if words have numbers
        count = tf.size(values)
        _, numbers = tf.unique(tf.concat([values, true_values], 0))
        values, true_values = numbers[:count], numbers[count:]
    sizes = tf.maximum(shape[:-1], true_shape[:-1])
    (given, many), (wanted, wide) = (
        _rows(*each, sizes) for each in ((indices, values, shape), (true_indices, true_values, true_shape))
    )
    own = tf.range(tf.shape(wanted)[1] + 1)
    apart = own[None, :] - own[:, None]
    far = tf.where(apart < 0, 1 << 20, apart)
    first = tf.broadcast_to(own, tf.stack([tf.shape(wanted)[0], tf.size(own)]))

    def turn(at: Any, row: Any, found: Any) -> Any:
        differs = tf.cast(given[:, at, None] != wanted, tf.int32)
        kept = tf.concat([row[:, :1] + 1, tf.minimum(row[:, 1:] + 1, row[:, :-1] + differs)], 1)
        new = tf.reduce_min(kept[:, :, None] + far, 1)
        return at + 1, new, tf.where((at + 1 <= many)[:, None], new, found)

    _, _, last = tf.while_loop(lambda at, *_: at < tf.shape(given)[1], turn, (0, first, first))
    total = tf.cast(tf.gather(last, wide, batch_dims=1), tf.float32)
    if node["normalize"]:
        total = tf.math.divide(total, tf.cast(wide, tf.float32))
        total = tf.where(wide > 0, total, tf.where(many > 0, float("inf"), 0.0))
    return tf.reshape(total, sizes)


def _rows(indices: Any, values: Any, shape: Any, sizes: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """A matrix, and how many elements of each row there are."""
    row = tf.reduce_sum(indices[:, :-1] * tf.math.cumprod(sizes, exclusive=True, reverse=True), 1)
    count = tf.reduce_prod(sizes)
    lengths = tf.math.unsorted_segment_sum(tf.ones_like(row, tf.int32), row, count)
    place = tf.range(tf.size(row, tf.int64)) - places_in(row, row, kind=tf.int64)  # gaps do not count
    where = tf.stack([row, place], 1)
    return tf.scatter_nd(where, values, tf.stack([count, shape[-1]])), lengths
