"""The judge of the sweeps: each verdict is given where it is due."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx.parser
import pytest

import entrepot as ep
from tests.op_cases.normal import normal as f32
from tests.sweeps.judging import Arrays, Subject, judged

DYNAMIC = """<ir_version: 10, opset_import: ["": 22]>
g (float[N, 3] x) => (float[N, 3] y) { y = Exp(x) }"""
STATIC = DYNAMIC.replace("N", "2")
TWO = DYNAMIC.replace("(float[N, 3] y) { y = Exp(x) }", "(float[N, 3] y, float[N, 3] z) { y = Exp(x)  z = Neg(x) }")
FAILING = DYNAMIC.replace(
    "y = Exp(x)", "s = Shape(x)  n = Size(s)  t = Constant<value_ints = [2, 3]>()  y = Reshape(x, t)"
)


@dataclass
class Case:
    """A function, and what its export gives."""

    function: Callable[[np.ndarray], np.ndarray]
    export: Callable[[], Any]
    name: str = "exp"
    corpus: str = "toys"


class Toy(Subject):
    """The sample has two rows, the other call four."""

    def __init__(self, case: Case) -> None:
        super().__init__(case.function, [f32(2, 3), f32(4, 3)])
        self._export = case.export

    def export(self) -> ep.Model:
        """What the case gives."""
        found: ep.Model = self._export()
        return found

    def answers(self, at: int) -> Sequence[np.ndarray]:
        """One array."""
        return [self.model(self.calls[at])]

    def feeds(self, exported: ep.Model, at: int) -> Arrays:
        """One array."""
        return {"x": self.calls[at]}

    def answers_to(self, feeds: Arrays, at: int) -> Sequence[np.ndarray]:
        """One array."""
        return [self.model(feeds["x"])]


def of(text: str) -> Callable[[], ep.Model]:
    """The file as a case's export."""
    return lambda: ep.load(onnx.parser.parse_model(text))


def failing(error: Exception) -> Callable[[], ep.Model]:
    """An export that ends in an error."""

    def export() -> ep.Model:
        raise error

    return export


@pytest.mark.parametrize(
    ("function", "export", "verdict", "why"),
    [
        (np.exp, of(DYNAMIC), "passed", ""),
        (np.exp, of(STATIC), "static", r"at \(4, 3\): .*expected 2"),
        (np.exp, of(TWO), "wrong", "2 outputs, the model 1"),
        (np.copy, of(FAILING), "wrong", r"at \(4, 3\): does not run"),
        (np.exp, failing(ep.ConversionError("no way")), "refused", "no way"),
        (np.exp, failing(ValueError("oh")), "crashed", "ValueError: oh"),
        (np.linalg.inv, of(DYNAMIC), "invalid", "LinAlgError"),
        (lambda x: np.exp(x) + np.float32(1e-3), of(DYNAMIC), "wrong", "at the sample"),
        (lambda x: np.exp(x) + np.float32(len(x) == 4), of(DYNAMIC), "wrong", r"at \(4, 3\)"),
        (lambda x: np.where(x > 0, np.float32(np.nan), np.exp(x)), of(DYNAMIC), "wrong", "at the sample"),
        (lambda x: np.exp(x)[:, ::-1], of(DYNAMIC), "wrong", "at the sample"),
        (lambda x: np.exp(x).astype(np.float64), of(DYNAMIC), "wrong", "at the sample"),
        (lambda x: np.exp(x)[None], of(DYNAMIC), "wrong", "at the sample"),
    ],
    ids=[
        "same", "one size", "outputs", "fails", "refused", "crashed", "invalid",
        "off", "off elsewhere", "nan", "order", "type", "shape",
    ],
)  # fmt: skip
def test_every_verdict_is_given_where_it_is_due(
    function: Callable[..., Any], export: Callable[[], Any], verdict: str, why: str
) -> None:
    found = judged(Case(function, export), Toy)
    assert (found.name, found.corpus, found.verdict) == ("exp", "toys", verdict)
    assert re.search(why or "^$", found.why), found.why


def test_results_are_excused_only_where_the_subject_says_so() -> None:
    class Lenient(Toy):
        def is_excused(self, at: int, feeds: Arrays, wanted: Arrays, found: Arrays) -> bool:
            """Not more than a hundredth away."""
            return all(np.abs(found[name] - wanted[name]).max() < 1e-2 for name in wanted)

    near, far = (Case(lambda x, by=by: np.exp(x) + np.float32(by), of(DYNAMIC)) for by in (1e-3, 1e-1))
    assert judged(near, Lenient).verdict == "passed"
    assert judged(far, Lenient).verdict == "wrong"
