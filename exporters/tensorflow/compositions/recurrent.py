"""Cells and layers of recurrent networks of TensorFlow 1, one step or all of them in one operator."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.node import Node


@composed("GRUBlockCell")
def gru_cell(node: Node, x: Any, h: Any, w_ru: Any, w_c: Any, b_ru: Any, b_c: Any) -> Any:
    """Reset and update gates, candidate, new state."""
    r, u = tf.split(tf.sigmoid(tf.concat([x, h], 1) @ w_ru + b_ru), 2, 1)
    c = tf.tanh(tf.concat([x, r * h], 1) @ w_c + b_c)
    return r, u, c, u * h + (1 - u) * c


@composed("LSTMBlockCell")
def lstm_cell(
    node: Node, x: Any, cs: Any, h: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any
) -> tuple[tf.Tensor, ...]:
    """Gates, states and output of one step."""
    return _step(node, "icfo", node["forget_bias"], x, cs, h, w, (wci, wcf, wco), b)


@composed("BlockLSTM", "BlockLSTMV2")
def lstm_layer(
    node: Node, most: Any, x: Any, cs: Any, h: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any
) -> list[tf.Tensor]:
    """All steps; those beyond the longest sequence are zeros."""
    order = "ifco" if node.op.endswith("V2") else "icfo"
    steps = tf.minimum(tf.cast(most, tf.int32), tf.shape(x)[0])
    collected = [tf.TensorArray(x.dtype, size=tf.shape(x)[0], element_shape=cs.shape) for _ in range(7)]

    def turn(at: Any, cs: Any, h: Any, *arrays: Any) -> Any:
        found = _step(node, order, node.get("forget_bias", 0.0), x[at], cs, h, w, (wci, wcf, wco), b)
        live = at < steps
        kept = [tf.where(live, each, tf.zeros_like(each)) for each in found]
        written = [array.write(at, each) for array, each in zip(arrays, kept, strict=True)]
        return (at + 1, found[1], found[6], *written)

    whole = tf.while_loop(lambda at, *_: at < tf.shape(x)[0], turn, (0, cs, h, *collected))
    return [array.stack() for array in whole[3:]]


def _step(
    node: Node, order: str, forget_bias: float, x: Any, cs: Any, h: Any, w: Any, peepholes: Any, b: Any
) -> tuple[tf.Tensor, ...]:
    parts = dict(zip(order, tf.split(tf.concat([x, h], 1) @ w + b, 4, 1), strict=True))
    looks, (wci, wcf, wco) = node["use_peephole"], peepholes
    i = tf.sigmoid(parts["i"] + cs * wci if looks else parts["i"])
    f = tf.sigmoid(parts["f"] + forget_bias + (cs * wcf if looks else 0.0))
    ci = tf.tanh(parts["c"])
    new = i * ci + f * cs
    clip = node["cell_clip"]
    new = tf.clip_by_value(new, -clip, clip) if clip > 0 else new
    o = tf.sigmoid(parts["o"] + new * wco if looks else parts["o"])
    co = tf.tanh(new)
    return i, new, f, o, ci, co, o * co
