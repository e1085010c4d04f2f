"""The zoo's models of Keras are exported, every axis that they name varies, and older opsets and our runtime agree."""

from __future__ import annotations

import random

import numpy as np
import onnxruntime
import pytest

import entrepot as ep
from entrepot import models_zoo
from entrepot.parity.compare import compare, scales_of
from tests.sweeps.exports_of_keras import answers

OPSETS = (13, 17, 20)


@pytest.fixture(scope="module", params=models_zoo.names("keras"))
def exported(request):
    zoo = models_zoo.build(request.param, "keras")
    return zoo, ep.export(zoo.module, zoo.sample[0], progress=False)


def test_a_model_is_proved_and_its_axes_vary(exported):
    zoo, model = exported
    assert model.report.ok
    varying = {
        f"{spec.name}.{at}" for spec in model.inputs for at, size in enumerate(spec.shape) if isinstance(size, str)
    }
    assert varying == zoo.dynamic


@pytest.mark.parametrize("opset", OPSETS)
def test_onnxruntime_and_our_runtime_agree_with_keras_at_every_opset(exported, opset):
    zoo, model = exported
    lowered = ep.convert_opset(model, opset)
    reference = onnxruntime.InferenceSession(lowered.to_proto().SerializeToString())
    for (array,) in zoo.samples:
        feeds = {lowered.inputs[0].name: array}
        names = [spec.name for spec in lowered.outputs]
        wanted = dict(zip(names, answers(zoo.module, [array]), strict=True))
        for found in (ep.Session(lowered).run(feeds), dict(zip(names, reference.run(names, feeds), strict=True))):
            assert compare(wanted, found, scales=scales_of([wanted])).ok


def test_building_twice_gives_the_same_and_leaves_random_states_alone():
    before = random.getstate()
    first, second = (models_zoo.build("masked_rnn", "keras").module for _ in range(2))
    assert random.getstate() == before
    assert all(map(np.array_equal, first.get_weights(), second.get_weights()))
