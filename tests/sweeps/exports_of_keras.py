"""Cases of Keras exported with nothing but a sample, or without one, and judged by calls of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

import entrepot as ep
from tests.export_cases.keras.case import KerasCase
from tests.sweeps.judging import Arrays, Subject, judged
from tests.sweeps.outcome import Outcome


def judge(case: KerasCase) -> Outcome:
    """Build, export and run a case."""
    return judged(case, Keras)


def answers(model: Any, call: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The arrays that a model returns in inference, in order; text as objects."""
    given = [_tensor(array) for array in call]
    results = model(given[0] if len(given) == 1 else keras.tree.pack_sequence_as(model.input, given), training=False)
    return [_array(each) for each in keras.tree.flatten(results)]


class Keras(Subject):
    """A model of Keras."""

    def __init__(self, case: KerasCase) -> None:
        super().__init__(*case.build())
        self._has_sample = case.sample

    def export(self) -> ep.Model:
        sample = self.calls[0][0] if len(self.calls[0]) == 1 else list(self.calls[0])
        return ep.export(self.model, sample if self._has_sample else None, progress=False)

    def answers(self, at: int) -> list[np.ndarray]:
        return answers(self.model, self.calls[at])

    def feeds(self, exported: ep.Model, at: int) -> dict[str, np.ndarray]:
        return dict(zip([spec.name for spec in exported.inputs], self.calls[at], strict=True))

    def answers_to(self, feeds: Arrays, at: int) -> list[np.ndarray]:
        return answers(self.model, list(feeds.values()))

    def is_excused(self, at: int, feeds: Arrays, wanted: Arrays, found: Arrays) -> bool:
        """Whether results are as close to those of the model in double precision as its own are."""
        if type(self.model).__name__ != "Functional" or not all(array.dtype == np.float32 for array in wanted.values()):
            return False
        double = keras.models.clone_model(self.model, clone_function=_widened, recursive=True)
        double.set_weights(self.model.get_weights())
        exact = dict(zip(wanted, answers(double, list(feeds.values())), strict=True))
        return all(
            found[name].shape == exact[name].shape
            and np.abs(found[name] - exact[name]).max() <= np.abs(wanted[name] - exact[name]).max()
            for name in wanted
        )


def _widened(layer: Any) -> Any:
    own = {"dtype": "float64"} if isinstance(layer, keras.Layer) else {}  # operations compute in what they are given
    return type(layer).from_config({**layer.get_config(), **own})


def _tensor(array: np.ndarray) -> Any:
    if array.dtype != object:
        return array
    import tensorflow as tf

    return tf.constant(array)


def _array(result: Any) -> np.ndarray:
    array = np.asarray(keras.ops.convert_to_numpy(result))
    if array.dtype.kind not in "OS":
        return array
    texts = [each.decode() if isinstance(each, bytes) else each for each in array.ravel()]
    return np.array(texts, object).reshape(array.shape)
