"""The judge of the Keras sweep: what is as near to the model in double precision as Keras is itself is not wrong."""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np
import pytest

from tests.export_cases.keras.case import Given, KerasCase
from tests.sweeps.exports_of_keras import Keras, answers


def case() -> KerasCase:
    """Two dense layers."""

    def make() -> keras.Model:
        x = keras.Input((5,))
        return keras.Model(x, keras.layers.Dense(3)(keras.layers.Dense(7, "tanh")(x)))

    return KerasCase("dense", "keras", make, inputs=(Given((5,)),))


@pytest.mark.parametrize(
    ("change", "excused"),
    [
        (lambda y: y, True),
        (lambda y: y + np.float32(1e-3), False),
        (lambda y: y * np.float32(np.nan), False),
        (lambda y: y[:, ::-1], False),
        (lambda y: y[:1], False),
        (lambda y: y[None], False),
    ],
    ids=["the same", "off", "nan", "order", "row", "rank"],
)
def test_results_are_excused_only_if_keras_is_as_far_off(
    change: Callable[[np.ndarray], np.ndarray], excused: bool
) -> None:
    subject = Keras(case())
    feeds, wanted = {"x": subject.calls[0][0]}, {"y": answers(subject.model, subject.calls[0])[0]}
    assert subject.is_excused(0, feeds, wanted, {"y": change(wanted["y"])}) == excused
