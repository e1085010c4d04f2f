"""Small results of Sigmoid, of which onnxruntime gets few digits right, refute no model; others do."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import entrepot as ep
from entrepot.parity.plan import Case
from entrepot.parity.sigmoids import OFF, sigmoids, without_sigmoids, without_what_is_off
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


class Gated:
    """A state of ten thousand behind gates that are all but closed."""

    name = "numpy"

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        gates = (1 / (1 + np.exp(-feeds["x"].astype(np.float64)))).astype(np.float32)
        return {"y": (gates * np.float32(1e4)).cumsum(axis=1, dtype=np.float32)}


GATED = """<ir_version: 10, opset_import: ["": 20]> gated (float[N, 4] x) => (float[N, 4] y)
<float state = {1e4}, int64 one = {1}> { gates = Sigmoid (x)  kept = Mul (gates, state)  y = CumSum (kept, one) }"""


def test_what_follows_from_sigmoid_at_edge_values_is_noted_as_well() -> None:
    x = np.array([[-14, -13, -12.5, -5]], np.float32)
    case = Case("edge values of 'x'", {"x": x}, edge="finite")
    report = verify(Gated(), ep.load(onnx.parser.parse_model(GATED)), [case])
    assert {run.provider: run.verdict for run in report.runs} == {"cpu": "agrees", "onnxruntime": "noted"}


def test_sigmoids_are_written_otherwise() -> None:
    found = without_sigmoids(model("Sigmoid"))
    assert found is not None
    assert "Sigmoid" not in {node.op_type for node in found.ir.graph}
    assert found.outputs == model("Sigmoid").outputs
    both = {"x": np.array([[-90, -1.5, 0, 80]], np.float32)}
    written, plain = (ep.Session(each).run(both)["y"] for each in (found, model("Sigmoid")))
    np.testing.assert_allclose(written, plain, rtol=1e-6)
    assert without_sigmoids(ep.load(onnx.parser.parse_model(GATED.replace("Sigmoid", "Tanh")))) is None
