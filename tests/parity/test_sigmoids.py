"""Small results of Sigmoid, of which onnxruntime gets few digits right, refute no model; others do."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import entrepot as ep
from entrepot.parity.sigmoids import OFF, sigmoids, without_what_is_off
from entrepot.parity.verify import verify

TEXT = """<ir_version: 10, opset_import: ["": 20]>
small (float[N, 4] x) => (float[N, 8] y) {{
  z = Neg (x)
  a = Sigmoid (x)
  b = {other} (z)
  turned = Transpose <perm = [1, 0]> (b)
  back = Transpose <perm = [1, 0]> (turned)
  y = Concat <axis = 1> (a, back) }}"""


class Exactly:
    """What the model is to compute."""

    name = "numpy"

    def __init__(self, times: float = 1.0) -> None:
        self._times = times

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        x = np.concatenate([feeds["x"], -feeds["x"] - 26], axis=1).astype(np.float64)
        return {"y": (self._times / (1 + np.exp(-x))).astype(np.float32)}


def model(other: str) -> ep.Model:
    return ep.load(onnx.parser.parse_model(TEXT.format(other=other)))


SHIFTED = TEXT.replace("z = Neg (x)", "all = Constant <value = float {{26.0}}> ()  less = Add (x, all)  z = Neg (less)")
X = {"x": np.linspace(-14, -12, 12, dtype=np.float32).reshape(3, 4)}


def test_small_results_of_sigmoid_are_noted() -> None:
    """onnxruntime (1.31) is off by a hundredth of them."""
    judged = ep.load(onnx.parser.parse_model(SHIFTED.format(other="Sigmoid")))
    report = verify(Exactly(), judged, [X, {"x": X["x"][:2]}])
    assert not report.failures
    assert [run.verdict for run in report.runs if run.provider == "cpu"] == ["agrees", "agrees"]
    assert {run.verdict for run in report.runs if run.provider == "onnxruntime"} == {"noted"}
    assert "seven digits" in report.summary()


@pytest.mark.parametrize("times", [0.9, 1.5])
def test_our_own_runtime_has_to_agree(times: float) -> None:
    judged = ep.load(onnx.parser.parse_model(SHIFTED.format(other="Sigmoid")))
    assert {run.provider for run in verify(Exactly(times), judged, [X]).failures} >= {"cpu"}


def test_a_provider_that_is_asked_for_by_name_is_not_excused() -> None:
    judged = ep.load(onnx.parser.parse_model(SHIFTED.format(other="Sigmoid")))
    assert verify(Exactly(), judged, [X], providers=("onnxruntime",)).failures


def test_outputs_of_sigmoid_alone_are_such() -> None:
    assert sigmoids(model("Sigmoid").ir) == {"y"}
    assert sigmoids(model("Tanh").ir) == frozenset()


def test_nothing_else_is_taken_from_the_source() -> None:
    expected = {"y": np.zeros(2, np.float32), "z": np.zeros(2, np.float32), "n": np.zeros(2, np.int64)}
    actual = {"y": np.array([OFF / 2, 2 * OFF], np.float32), "z": np.full(2, OFF / 2, np.float32), "n": np.ones(2, int)}
    settled = without_what_is_off({"y", "n"}, expected, actual)
    assert settled["y"].tolist() == [0, 2 * OFF]
    assert settled["z"] is actual["z"]
    assert settled["n"] is actual["n"]
