"""Text joined along axes and in runs of neighbours."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.compositions.places import places_in
from entrepot.exporters.tensorflow.node import Node


@composed("ReduceJoin")
def joined_along(node: Node, x: Any, axes: Any) -> tf.Tensor:
    """Along axes whose sizes are known, one after the other; onnxruntime (1.31) loses text that loops carry."""
    known = tf.get_static_value(axes)
    if known is None or x.shape.rank is None:
        node.refuse("joins along axes that vary")
    gone = [int(axis) % x.shape.rank for axis in known.ravel()]
    for axis in gone:
        if not x.shape[axis]:
            node.refuse("joins along an axis whose size is not known")
        x = tf.strings.join(tf.split(x, x.shape[axis], axis), node["separator"])
    return x if node["keep_dims"] else tf.squeeze(x, gone)


@composed("StringNGrams")
def runs(node: Node, texts: Any, splits: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Every so many neighbours of a row as one text; rows that are shorter have none."""
    if node["left_pad"] or node["right_pad"] or node["pad_width"] or node["preserve_short_sequences"]:
        node.refuse("pads rows, or keeps those that are too short")
    starts, found, rows = splits[:-1], [], []
    for width in node["ngram_widths"]:
        limits = tf.maximum(splits[1:] - (width - 1), starts)
        _, places = tf.raw_ops.RaggedRange(starts=starts, limits=limits, deltas=tf.ones([], splits.dtype))
        found.append(tf.strings.join([tf.gather(texts, places + more) for more in range(width)], node["separator"]))
        rows.append(places_in(splits[1:], places, side="right"))
    every = tf.concat(rows, 0)
    order = tf.argsort(every, stable=True)
    counts = tf.math.unsorted_segment_sum(tf.ones_like(every), every, tf.shape(starts)[0])
    ends = tf.concat([[0], tf.cumsum(counts)], 0)
    return tf.gather(tf.concat(found, 0), order), tf.cast(ends, splits.dtype)
