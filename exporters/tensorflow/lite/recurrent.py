"""Recurrent networks of TensorFlow Lite, all steps in one operator, from states of zeros."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.lite.model import Operation
from entrepot.exporters.tensorflow.lite.operators import ACTIVATIONS, lite


@lite("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(operation: Operation, x: Any, *operands: Any) -> Any:
    """With peepholes, normalised gates and a projection where it has them; where no gate lets in, what is forgotten."""
    given = [*operands, *[None] * (23 - len(operands))]
    inputs, recurrent, peepholes = given[:4], given[4:8], [*given[8:10], None, given[10]]
    biases, (projection, shift) = given[11:15], given[15:17]
    scales, options = given[19:23], operation.options
    steps = x if options.timeMajor else tf.transpose(x, [1, 0, 2])
    before = [
        None if weight is None else _times(steps, weight) + (0.0 if bias is None or scale is not None else bias)
        for weight, bias, scale in zip(inputs, biases, scales, strict=True)
    ]
    rows = tf.shape(steps)[1]
    start = [tf.zeros(tf.stack([rows, each.shape[-1]]), x.dtype) for each in (given[17], given[18])]

    def gate(at: int, own: Any, h: Any, state: Any) -> Any:
        value = own + _times(h, recurrent[at])
        if peepholes[at] is not None:
            value += state * peepholes[at]
        if scales[at] is not None:
            mean, variance = tf.nn.moments(value, [-1], keepdims=True)
            value = (value - mean) * tf.math.rsqrt(variance + 1e-8) * scales[at] + biases[at]
        return value

    def turn(carried: Any, own: Any) -> Any:
        h, state = carried
        own = iter(own)
        i, f, c, o = (None if each is None else next(own) for each in before)
        forget = tf.sigmoid(gate(1, f, h, state))
        enter = 1.0 - forget if i is None else tf.sigmoid(gate(0, i, h, state))
        new = forget * state + enter * ACTIVATIONS[options.fusedActivationFunction](gate(2, c, h, state))
        new = _clipped(new, options.cellClip)
        y = tf.sigmoid(gate(3, o, h, new)) * ACTIVATIONS[options.fusedActivationFunction](new)
        if projection is not None:
            y = _clipped(_times(y, projection) + (0.0 if shift is None else shift), options.projClip)
        return y, new

    found = tf.scan(turn, tuple(each for each in before if each is not None), tuple(start))[0]
    return found if options.timeMajor else tf.transpose(found, [1, 0, 2])


@lite("UNIDIRECTIONAL_SEQUENCE_RNN")
def rnn(operation: Operation, x: Any, weight: Any, recurrent: Any, bias: Any, state: Any) -> Any:
    """Each step is activated, and is the next one's state."""
    options = operation.options
    steps = _times(x if options.timeMajor else tf.transpose(x, [1, 0, 2]), weight) + bias
    start = tf.zeros(tf.stack([tf.shape(steps)[1], state.shape[-1]]), x.dtype)
    activate = ACTIVATIONS[options.fusedActivationFunction]
    found = tf.scan(lambda h, own: activate(own + _times(h, recurrent)), steps, start)
    return found if options.timeMajor else tf.transpose(found, [1, 0, 2])


def _times(x: Any, weight: Any) -> Any:
    """Weights have a row for each result."""
    return tf.tensordot(x, weight, [[-1], [1]])


def _clipped(x: Any, bound: float) -> Any:
    return tf.clip_by_value(x, -bound, bound) if bound > 0 else x
