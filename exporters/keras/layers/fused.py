"""Recurrent layers that ONNX has operators for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import typed
from entrepot.exporters.keras.reading.step import Step, shape_of

_ACTIVATIONS = {"tanh": "Tanh", "sigmoid": "Sigmoid", "relu": "Relu", "hard_sigmoid": "HardSigmoid"}
_CELLS = {"LSTMCell": "LSTM", "GRUCell": "GRU", "SimpleRNNCell": "RNN"}
_ORDER = {"LSTM": (0, 3, 1, 2), "GRU": (0, 1, 2), "RNN": (0,)}
"""Where ONNX's gates are among Keras'."""


def is_fused(rnn: Any, states: Sequence[Any], value: ir.Value) -> bool:
    """Whether an operator computes just this; onnxruntime (1.31) has none for double precision."""
    cell = rnn.cell
    plain = type(cell).__module__.startswith("keras.src.layers") and type(cell).__name__ in _CELLS
    wide = value.dtype == ir.DataType.FLOAT and cell.compute_dtype == cell.variable_dtype
    return plain and wide and None not in _names(cell)


def _names(cell: Any) -> list[str | None]:
    functions = {
        "LSTMCell": lambda: [cell.recurrent_activation, cell.activation, cell.activation],
        "GRUCell": lambda: [cell.recurrent_activation, cell.activation],
        "SimpleRNNCell": lambda: [cell.activation],
    }
    return [_name(function) for function in functions[type(cell).__name__]()]


def _name(function: Any) -> str | None:
    plain = getattr(keras.activations, getattr(function, "__name__", ""), None) is function
    return _ACTIVATIONS.get(function.__name__) if plain else None


def fused(
    step: Step, rnn: Any, value: ir.Value, states: Sequence[ir.Value], mask: ir.Value | None
) -> tuple[ir.Value, list[ir.Value]]:
    """Every step's output and the last state.

    ONNX knows lengths, not masks: the steps that count are moved to the front, and each step then takes the output of
    the last one that counted up to it.
    """
    count = places = None
    if mask is not None:
        count, order, places = _compacted(step, mask)
        value = typed(step.op("GatherND", value, order, batch_dims=1), value.dtype, shape_of(value))
    outputs, last = _operator(step, rnn.cell, value, states, count)
    if mask is None or count is None or places is None:
        return outputs, last
    some = step.op("Greater", step.op("Unsqueeze", count, [1]), 0)
    last = [typed(step.op("Where", some, a, b), a.dtype, shape_of(a)) for a, b in zip(last, states, strict=True)]
    return _spread(step, rnn, outputs, mask, places), last


def _compacted(step: Step, mask: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """How many steps count, in which order they come first, and the number of the last one up to each step."""
    counts = step.build.cast(mask, np.int64)
    length = step.op("Shape", mask, start=1, end=2)
    number = step.op("Range", 0, step.op("Squeeze", length), 1)
    rank = step.op("Sub", step.op("Mul", counts, length), number)
    _, order = step.op("TopK", rank, length, outputs=2, axis=1)
    count = step.build.cast(step.op("ReduceSum", counts, [1], keepdims=0), np.int32)
    places = step.op("Sub", step.op("CumSum", counts, np.array(1, np.int64)), 1)
    return typed(count, np.int32, [None]), step.op("Unsqueeze", order, [2]), places


def _spread(step: Step, rnn: Any, outputs: ir.Value, mask: ir.Value, places: ir.Value) -> ir.Value:
    at = step.op("Unsqueeze", step.op("Max", places, 0), [2])
    found = step.op("GatherND", outputs, at, batch_dims=1)
    kept = mask if rnn.zero_output_for_mask else step.op("GreaterOrEqual", places, 0)
    result = step.op("Where", step.op("Unsqueeze", kept, [2]), found, step.value(0, outputs.dtype))
    return typed(result, outputs.dtype, shape_of(outputs))


def _operator(
    step: Step, cell: Any, value: ir.Value, states: Sequence[ir.Value], count: ir.Value | None
) -> tuple[ir.Value, list[ir.Value]]:
    name, units = _CELLS[type(cell).__name__], int(cell.units)
    matrix, bias = _MATRICES[name], _BIASES[name]
    weights = step.reader.weights
    kernel = weights.changed(weights.value(cell.kernel), matrix)
    recurrent = weights.changed(weights.value(cell.recurrent_kernel), matrix)
    offsets = weights.changed(weights.value(cell.bias), bias) if cell.use_bias else None
    names = _names(cell)
    attributes: dict[str, Any] = {"hidden_size": units, "activations": names}
    if hard := names.count("HardSigmoid"):
        attributes |= {"activation_alpha": [1 / 6] * hard, "activation_beta": [0.5] * hard}
    if name == "GRU":
        attributes["linear_before_reset"] = int(cell.reset_after)
    before = [step.op("Unsqueeze", state, [0]) for state in states]
    made = step.op(
        name, step.transposed(value, [1, 0, 2]), kernel, recurrent, offsets, count, *before,
        outputs=len(states) + 1, **attributes,
    )  # fmt: skip
    batch, length, _ = shape_of(value)
    steps = typed(step.op("Squeeze", made[0], [1]), value.dtype, [length, batch, units])
    last = [typed(step.op("Squeeze", each, [0]), value.dtype, [batch, units]) for each in made[1:]]
    return step.transposed(steps, [1, 0, 2]), last


def _matrix(name: str) -> Any:
    def change(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        gates = np.split(array, len(_ORDER[name]), axis=1)
        return np.concatenate([gates[at] for at in _ORDER[name]], axis=1).T[None]

    return change


def _bias(name: str) -> Any:
    def change(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        rows = array if array.ndim == 2 else np.stack([array, np.zeros_like(array)])
        gates = np.split(rows, len(_ORDER[name]), axis=1)
        return np.concatenate([gates[at] for at in _ORDER[name]], axis=1).reshape(1, -1)

    return change


_MATRICES = {name: _matrix(name) for name in _ORDER}
_BIASES = {name: _bias(name) for name in _ORDER}
