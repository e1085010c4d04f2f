"""Functions and files of TensorFlow exported with nothing but a sample, or without one, and judged by TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

import entrepot as ep
from entrepot.parity.compare import NOISE
from tests.export_cases.tensorflow.case import FunctionCase
from tests.sweeps.judging import Arrays, Subject, judged
from tests.sweeps.outcome import Outcome

_SIDES = 6.0
"""Results of quantised kernels may lie this many steps from those of a graph, after some layers."""


def judge(case: FunctionCase) -> Outcome:
    """Build, export and run a case."""
    return judged(case, TensorFlow)


class TensorFlow(Subject):
    """A function or a file of TensorFlow."""

    def __init__(self, case: FunctionCase) -> None:
        super().__init__(*case.build())
        self._is_file, self._steps = case.call is not None, case.steps
        self._reference = self.model if case.call is None else case.call(self.model)

    def export(self) -> ep.Model:
        return ep.export(self.model, None if self._is_file else _tensors(self.calls[0]), progress=False)

    def answers(self, at: int) -> list[np.ndarray]:
        call = self.calls[at]
        if isinstance(call, dict):
            found = self._reference(**{name: _tensors(value) for name, value in call.items()})
            in_order = self._is_file and isinstance(found, Mapping)  # a file keeps names in any order
            return [*_arrays(dict(sorted(found.items())) if in_order else found)]
        return [*_arrays(self._reference(*map(_tensors, call)))]

    def feeds(self, exported: ep.Model, at: int) -> Arrays:
        call = self.calls[at]
        names = [spec.name for spec in exported.inputs]
        return call if isinstance(call, dict) else dict(zip(names, _arrays(call), strict=True))

    def noise(self, at: int, feeds: Arrays, wanted: Arrays) -> dict[str, float]:
        """As far as quantised kernels round otherwise."""
        return dict.fromkeys(wanted, _SIDES * self._steps / NOISE)


def _tensors(value: Any) -> Any:
    return tf.nest.map_structure(tf.constant, value)


def _arrays(value: Any) -> Iterator[Any]:
    """The arrays in a structure, in order."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _arrays(each)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _arrays(each)
    elif value is not None and not isinstance(value, int | float):
        array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
        yield array if array.dtype.kind not in "OS" else _texts(array)


def _texts(array: Any) -> Any:
    texts = [each.decode() if isinstance(each, bytes) else each for each in array.ravel()]
    return np.array(texts, object).reshape(array.shape)
