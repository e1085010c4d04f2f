"""Operators of which torch has no kernel for inputs, channels or weights of nothing."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import entrepot as ep
from tests.op_cases.case import Case, f32

BIAS = np.array([1, 2, 3, 4], np.float32)
SUMS = np.broadcast_to(BIAS[:, None], (2, 4, 5))
LARGEST = {"kernel_shape": [3], "strides": [2]}
NOTHING = {
    "Conv without results": (Case("Conv", f32(2, 3, 7), f32(0, 3, 3)), np.zeros((2, 0, 5))),
    "Conv without channels": (Case("Conv", f32(2, 0, 7), f32(4, 0, 3), BIAS), SUMS),
    "ConvInteger": (
        Case("ConvInteger", np.zeros((1, 2, 5, 5), np.uint8), np.zeros((0, 2, 3, 3), np.uint8)),
        np.zeros((1, 0, 3, 3)),
    ),
    "ConvTranspose of no points": (
        Case("ConvTranspose", f32(2, 3, 0), f32(3, 4, 3), strides=[2], output_padding=[1]),
        np.zeros((2, 4, 2)),
    ),
    "ConvTranspose without results": (Case("ConvTranspose", f32(2, 3, 3), f32(3, 0, 3)), np.zeros((2, 0, 5))),
    "ConvTranspose without channels": (Case("ConvTranspose", f32(2, 0, 3), f32(0, 4, 3), BIAS), SUMS),
    "MaxPool": (Case("MaxPool", f32(2, 0, 9), **LARGEST), np.zeros((2, 0, 4))),
    "AveragePool": (Case("AveragePool", f32(2, 0, 9), **LARGEST), np.zeros((2, 0, 4))),
    "DFT": (Case("DFT", f32(0, 8, 1), onesided=1), np.zeros((0, 5, 2))),
    "DFT of padding": (Case("DFT", f32(2, 0, 1), np.array(8)), np.zeros((2, 8, 2))),
    "inverse DFT": (Case("DFT", f32(0, 5, 2), onesided=1, inverse=1), np.zeros((0, 8, 1))),
    "STFT": (Case("STFT", f32(0, 20, 1), np.array(4), f32(8)), np.zeros((0, 4, 5, 2))),
}


@pytest.mark.parametrize("name", NOTHING)
def test_results_are_those_of_the_formula(name: str) -> None:
    case, expected = NOTHING[name]
    found = next(iter(ep.Session(ep.load(case.model()), providers=["torch"]).run(case.feeds()).values()))
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("sorted_", [0, 1])
def test_slices_of_nothing_are_all_alike(sorted_: int) -> None:
    case = Case("Unique", f32(4, 0), axis=0, sorted=sorted_).outputs(4)
    values, first, inverse, counts = ep.Session(ep.load(case.model()), providers=["torch"]).run(case.feeds()).values()
    assert values.shape == (1, 0)
    assert (first.tolist(), inverse.tolist(), counts.tolist()) == ([0], [0, 0, 0, 0], [4])


def test_weights_of_nothing_may_be_constant() -> None:
    model = Case("Conv", f32(2, 0, 7), f32(4, 0, 3), BIAS).model()
    for name, value in (("i1", np.zeros((4, 0, 3), np.float32)), ("i2", BIAS)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    del model.graph.input[1:]
    found = ep.Session(ep.load(model), providers=["torch"]).run({"i0": np.zeros((2, 0, 7), np.float32)})
    np.testing.assert_array_equal(found["o0"], SUMS)


@pytest.mark.parametrize("fed", [False, True], ids=["weights of the file", "weights that are fed"])
@pytest.mark.parametrize("op_type", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize(("length", "units"), [(0, 3), (2, 0)], ids=["no steps", "no units"])
def test_recurrences_of_nothing(op_type: str, length: int, units: int, fed: bool) -> None:
    gates, extra = {"RNN": (1, {}), "GRU": (3, {"linear_before_reset": 1}), "LSTM": (4, {})}[op_type]
    weights = f32(1, gates * units, 5), f32(1, gates * units, units)
    case = Case(op_type, f32(length, 2, 5), *weights, hidden_size=units, **extra).outputs(2)
    model, feeds = case.model(), case.feeds()
    if not fed:
        for name in ("i1", "i2"):
            model.graph.initializer.append(onnx.numpy_helper.from_array(feeds.pop(name), name))
        del model.graph.input[1:]
    y, last = ep.Session(ep.load(model), providers=["torch"]).run(feeds).values()
    assert y.shape == (length, 1, 2, units)
    np.testing.assert_array_equal(last, np.zeros((1, 2, units)))
