"""Recurrent networks of TensorFlow Lite in one operator, as converters of Keras 2 wrote them, judged by its runtime.

TensorFlow's own converter no longer makes such files, so that they are put together here, from their schema.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest

import entrepot as ep
from entrepot.exporters.tensorflow.upstream import lite_schema

SCHEMA: Any = lite_schema()
TANH = 4
RANDOM = np.random.default_rng(0)


def _normal(*shape: int) -> np.ndarray:
    return (RANDOM.standard_normal(shape) * 0.5).astype(np.float32)


class File:
    """A file of one operator.

    Args:
        op: Its name.
        options: Its attributes.
        kind: What these are called.
    """

    def __init__(self, op: str, options: Any, kind: str) -> None:
        self._model, self._graph, self._operation = SCHEMA.ModelT(), SCHEMA.SubGraphT(), SCHEMA.OperatorT()
        self._model.version, self._model.buffers, self._graph.tensors = 3, [SCHEMA.BufferT()], []
        self._operation.builtinOptions = options
        self._operation.builtinOptionsType = getattr(SCHEMA.BuiltinOptions, kind)
        code = SCHEMA.OperatorCodeT()
        code.builtinCode = code.deprecatedBuiltinCode = getattr(SCHEMA.BuiltinOperator, op)
        code.version = 1
        self._model.operatorCodes = [code]

    def _tensor(self, name: str, shape: Sequence[int], array: np.ndarray | None = None, *, state: bool = False) -> int:
        tensor = SCHEMA.TensorT()
        tensor.name, tensor.shape, tensor.isVariable = name, list(shape), state
        if array is not None:
            buffer = SCHEMA.BufferT()
            buffer.data = np.frombuffer(array.tobytes(), np.uint8)
            self._model.buffers.append(buffer)
            tensor.buffer = len(self._model.buffers) - 1
        self._graph.tensors.append(tensor)
        return len(self._graph.tensors) - 1

    def write(
        self, path: Path, arrays: Sequence[np.ndarray | None], states: Collection[int], given: Any, made: Any
    ) -> None:
        """Write it, of an input and the arrays, those at ``states`` being kept from call to call."""
        operation, graph = self._operation, self._graph
        operation.inputs = [self._tensor("x", given)]
        for at, array in enumerate(arrays):
            stored = None if at in states else array
            number = -1 if array is None else self._tensor(f"w{at}", array.shape, stored, state=at in states)
            operation.inputs.append(number)
        operation.outputs = [self._tensor("y", made)]
        graph.inputs, graph.outputs, graph.operators = operation.inputs[:1], operation.outputs, [operation]
        self._model.subgraphs = [graph]
        builder = flatbuffers.Builder(1024)
        builder.Finish(self._model.Pack(builder), b"TFL3")
        path.write_bytes(bytes(builder.Output()))


def _lstm(path: Path, features: Collection[str]) -> tuple[int, ...]:
    options = SCHEMA.UnidirectionalSequenceLSTMOptionsT()
    options.fusedActivationFunction, options.timeMajor = TANH, "time first" in features
    options.cellClip, options.projClip = (0.3, 0.2) if "clipped" in features else (0.0, 0.0)
    width, projected = 5, "projection" in features
    result = 3 if projected else width
    has = ["coupled" not in features, True, True, True]  # gates: for what enters, is forgotten, is new, and leaves
    gates = [[_normal(width, size) if each else None for each in has] for size in (4, result)]
    looks = [_normal(width) if "peepholes" in features and has[at] else None for at in (0, 1, 3)]
    biases = [_normal(width) if each else None for each in has]
    states = [np.zeros((2, result), np.float32), np.zeros((2, width), np.float32)]
    scales = [_normal(width) if "normalised" in features and each else None for each in has]
    arrays = [*gates[0], *gates[1], *looks, *biases, _normal(result, width) if projected else None, None]
    given, made = (2, 6, 4), (2, 6, result)
    if options.timeMajor:
        given, made = (6, 2, 4), (6, 2, result)
    file = File("UNIDIRECTIONAL_SEQUENCE_LSTM", options, "UnidirectionalSequenceLSTMOptions")
    file.write(path, [*arrays, *states, *scales], (17, 18), given, made)
    return given


@pytest.mark.parametrize(
    "features",
    [(), ("time first",), ("peepholes",), ("projection", "clipped"), ("coupled", "peepholes"), ("normalised",)],
)
def test_lstm(features: Collection[str], tmp_path: Path) -> None:
    shape = _lstm(tmp_path / "lstm.tflite", features)
    model = ep.export(tmp_path / "lstm.tflite", _normal(*shape), progress=False)
    assert model.report.ok
    assert {"Loop", "Scan"} & {node.op_type for node in model.ir.graph}


@pytest.mark.parametrize("first", [False, True])
def test_rnn(first: bool, tmp_path: Path) -> None:
    options = SCHEMA.SequenceRNNOptionsT()
    options.fusedActivationFunction, options.timeMajor = TANH, first
    given, made = ((6, 2, 4), (6, 2, 5)) if first else ((2, 6, 4), (2, 6, 5))
    arrays = [_normal(5, 4), _normal(5, 5), _normal(5), np.zeros((2, 5), np.float32)]
    file = File("UNIDIRECTIONAL_SEQUENCE_RNN", options, "SequenceRNNOptions")
    file.write(tmp_path / "rnn.tflite", arrays, (3,), given, made)
    assert ep.export(tmp_path / "rnn.tflite", _normal(*given), progress=False).report.ok
