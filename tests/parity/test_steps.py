"""Results that a model makes of rounding alone are no failure of the runtime; a wrong node or graph is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest

import entrepot as ep
from entrepot.parity.judge import Judge
from entrepot.parity.plan import Case
from entrepot.parity.steps import Steps

ROWS, INNER, COLUMNS = 40, 33, 8
RNG = np.random.default_rng(7)
X = RNG.integers(-9, 10, (ROWS, INNER))
WEIGHT = RNG.standard_normal((INNER, COLUMNS)).astype(np.float32)
FIRST = (X[0] @ WEIGHT.astype(np.float64)).astype(np.float32)
"""The first row of the product but for its rounding, which is all that is left once it is subtracted."""

NORMALISED = """<ir_version: 10, opset_import: ["": 20]>
normalised (int64[N, 33] x, float[33, 8] w, float[8] first) => (float[N, 8] y) {{
  ones = Constant <value = float[8] {{1, 1, 1, 1, 1, 1, 1, 1}}> ()
  f = Cast <to = 1> (x)
  s = MatMul (f, w)
  {apart}
  y = LayerNormalization <epsilon = 1e-30> (d, ones) }}"""
RIGHT, WRONG = "d = Sub (s, first)", "d = Sub (first, s)"


def model(apart: str = RIGHT) -> ep.Model:
    return ep.load(onnx.parser.parse_model(NORMALISED.format(apart=apart)))


class Exactly:
    """A source that happens to lose nothing to rounding, so that it says nothing of what others lose."""

    name = "numpy"

    def exact(self, feeds: dict[str, np.ndarray]) -> dict[str, Any]:
        d = X @ WEIGHT.astype(np.float64) - FIRST
        away = d - d.mean(1, keepdims=True)
        return {"y": away / np.sqrt((away**2).mean(1, keepdims=True))}

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, Any]:
        return {name: value.astype(np.float32) for name, value in self.exact(feeds).items()}


FEEDS = {"x": X, "w": WEIGHT, "first": FIRST}


@pytest.mark.parametrize(("apart", "right"), [(RIGHT, True), (WRONG, False)])
def test_what_differs_by_rounding_alone_is_proved_node_by_node(apart: str, right: bool) -> None:
    judged = model(apart)
    expected, actual = Exactly().run(FEEDS), ep.Session(judged, providers=["cpu"]).run(FEEDS)
    assert not np.allclose(expected["y"], actual["y"], atol=0.1)  # or there is nothing to be proved
    found = Judge(Exactly(), judged, None, {}).compare(Case("sample", FEEDS), expected, actual, "cpu")
    assert found.ok == right


def test_what_others_compute_is_not_looked_into() -> None:
    """Only our own runtime is run node by node, so only its results are explained."""
    judged = model()
    expected, actual = Exactly().run(FEEDS), ep.Session(judged, providers=["cpu"]).run(FEEDS)
    assert not Judge(Exactly(), judged, None, {}).compare(Case("sample", FEEDS), expected, actual, "onnxruntime")


def test_once_it_was_rounding_alone_that_is_asked_first() -> None:
    class Counted(Exactly):
        runs = 0

        def run(self, feeds: dict[str, np.ndarray]) -> dict[str, Any]:
            self.runs += 1
            return super().run(feeds)

    judged, source = model(), Counted()
    expected, actual = Exactly().run(FEEDS), ep.Session(judged, providers=["cpu"]).run(FEEDS)
    judge = Judge(source, judged, None, {})
    assert judge.compare(Case("sample", FEEDS), expected, actual, "cpu")
    runs = source.runs
    assert runs  # from other inputs, to see how unsure it is
    assert judge.compare(Case("other values", FEEDS), expected, actual, "cpu")
    assert source.runs == runs
    assert not judge.compare(Case("wrong", FEEDS), expected, {"y": actual["y"] + 1}, "cpu")
    assert source.runs > runs  # nothing is refuted by that alone


class _Off:
    """A session with a kernel that is a little off."""

    def __init__(self, session: Any, name: str, by: float) -> None:
        self._session, self._name, self._by = session, name, by

    def run(self, feeds: Any, names: Any) -> dict[str, Any]:
        found = self._session.run(feeds, names)
        return {**found, self._name: found[self._name] * np.float32(1 + self._by)}


@pytest.mark.parametrize("name", ["f", "s", "d", "y"])
def test_a_node_that_is_off_by_more_than_rounding_is_found(name: str) -> None:
    steps = Steps(model())
    actual = steps._single.run(FEEDS, ["y"])
    assert steps.hold(FEEDS, actual)
    steps._single = _Off(steps._single, name, 3e-5)
    assert not steps.hold(FEEDS, actual)


def test_a_run_that_computes_something_else_than_the_one_that_is_looked_into_is_not_explained() -> None:
    steps = Steps(model())
    actual = steps._single.run(FEEDS, ["y"])["y"].copy()
    actual[3, 3] += 0.01
    assert not steps.hold(FEEDS, {"y": actual})


def test_nodes_that_are_computed_together_stay_together() -> None:
    text = """<ir_version: 10, opset_import: ["": 20]>
        gated (float[N, 4] x) => (float[N, 4] y, float[N, 4] z) {
          a = Neg (x)  b = Sigmoid (a)  c = Mul (a, b)  z = Sigmoid (c)  y = Mul (c, z)  }"""
    steps = Steps(ep.load(onnx.parser.parse_model(text)))
    assert {"b", "c"}.isdisjoint(steps._names)  # one kernel makes c of a
    assert {"a", "y", "z"} <= {*steps._names}  # results are always among them
    feeds = {"x": np.float32([[1, 2, 3, 4]])}
    assert steps.hold(feeds, steps._single.run(feeds, ["y", "z"]))
