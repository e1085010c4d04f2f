"""Gradients of cells and layers of recurrent networks of TensorFlow 1."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.node import Node


@composed("GRUBlockCellGrad")
def of_gru_cell(
    node: Node, x: Any, h: Any, w_ru: Any, w_c: Any, b_ru: Any, b_c: Any, r: Any, u: Any, c: Any, dh: Any
) -> Any:
    """Of what goes in, of the state before, and of candidate and gates before their activations."""
    width = tf.shape(x)[1]
    dc = dh * (1 - u) * (1 - c * c)
    through = tf.matmul(dc, w_c, transpose_b=True)
    of_reset, du = through[:, width:], dh * (h - c) * u * (1 - u)
    gates = tf.concat([of_reset * h * r * (1 - r), du], 1)
    both = tf.matmul(gates, w_ru, transpose_b=True)
    return both[:, :width] + through[:, :width], both[:, width:] + of_reset * r + dh * u, dc, gates


@composed("LSTMBlockCellGrad")
def of_lstm_cell(node: Node, x: Any, before: Any, h: Any, w: Any, *rest: Any) -> Any:
    """Of the state before, of the gates before their activations, and of the peepholes."""
    wci, wcf, wco, _, i, cs, f, o, ci, co, dcs, dh = rest
    di, dci, df, do, earlier = _of_gates(node, before, (wci, wcf, wco), (i, cs, f, o, ci, co), dcs, dh)
    if node["use_peephole"]:
        peepholes = [tf.reduce_sum(gate * state, 0) for gate, state in ((di, before), (df, before), (do, cs))]
    else:
        peepholes = [tf.zeros_like(each) for each in (wci, wcf, wco)]
    return (earlier, tf.concat([di, dci, df, do], 1), *peepholes)


@composed("BlockLSTMGrad", "BlockLSTMGradV2")
def of_lstm_layer(node: Node, most: Any, x: Any, first: Any, h_first: Any, w: Any, *rest: Any) -> Any:
    """Of all that goes in, from the last step back to the first."""
    wci, wcf, wco, b, i, cs, f, o, ci, co, h, dcs, dh = rest
    width, looks, newer = tf.shape(x)[2], node["use_peephole"], node.op.endswith("V2")
    states = tf.concat([first[None], cs], 0)
    outputs = tf.concat([h_first[None], h], 0)
    steps = tf.minimum(tf.cast(most, tf.int32), tf.shape(x)[0])
    collected = tf.TensorArray(x.dtype, size=tf.shape(x)[0], element_shape=[None, x.shape[2]])

    def turn(at: Any, of_state: Any, of_output: Any, sums: Any, array: Any) -> Any:
        made = tuple(each[at] for each in (i, cs, f, o, ci, co))
        given = dcs[at] + of_state, dh[at] + of_output
        di, dci, df, do, earlier = _of_gates(node, states[at], (wci, wcf, wco), made, *given)
        gates = tf.concat([di, df, dci, do] if newer else [di, dci, df, do], 1)
        back = tf.matmul(gates, w, transpose_b=True)
        new = [tf.matmul(tf.concat([x[at], outputs[at]], 1), gates, transpose_a=True), tf.reduce_sum(gates, 0)]
        if looks:
            new += [
                tf.reduce_sum(gate * state, 0) for gate, state in ((di, states[at]), (df, states[at]), (do, cs[at]))
            ]
        added = [one + two for one, two in zip(sums, new, strict=False)] + list(sums[len(new) :])
        return at - 1, earlier, back[:, width:], added, array.write(at, back[:, :width])

    sums = [tf.zeros_like(each) for each in (w, b, wci, wcf, wco)]
    start = (steps - 1, tf.zeros_like(first), tf.zeros_like(h_first), sums, collected)
    _, of_state, of_output, (dw, db, *peepholes), array = tf.while_loop(lambda at, *_: at >= 0, turn, start)
    return (array.stack(), of_state, of_output, dw, *peepholes, db)


def _of_gates(node: Node, before: Any, peepholes: Any, made: Any, dcs: Any, dh: Any) -> tuple[Any, ...]:
    (wci, wcf, wco), (i, _, f, o, ci, co) = peepholes, made
    looks = node["use_peephole"]
    do = o * (1 - o) * dh * co
    state = (1 - co * co) * dh * o + dcs + (do * wco if looks else 0.0)
    di, dci, df = i * (1 - i) * state * ci, (1 - ci * ci) * state * i, f * (1 - f) * state * before
    return di, dci, df, do, state * f + (di * wci + df * wcf if looks else 0.0)
