"""Two runtimes that are both right differ about a quantised network now and then, by a few steps."""

from __future__ import annotations

import numpy as np
import pytest

import entrepot as ep
from entrepot.parity.compare import compare
from entrepot.parity.few_steps import apart_by_few_steps
from entrepot.parity.report.facts import ModelFacts
from entrepot.parity.report.report import Report, Run
from tests.ir.opset.evaluate import parse

STEP = 0.25
FEEDS = {"i": np.array([0, 1, 2], np.int64)}
QUANTISED = parse(
    "a = Gather(w, i)  q = QuantizeLinear(a, s, z)  y = DequantizeLinear(q, s, z)", 13,
    "int64[N] i) => (float[N] y",
    stored=f"float[3] w = {{0.12501, 1.3, 2.7}}, float s = {{{STEP}}}, uint8 z = {{3}}",
)  # fmt: skip
PLAIN = parse("y = Gather(w, i)", 13, "int64[N] i) => (float[N] y", stored="float[3] w = {0.125, 1.3, 2.7}")


def report(model: ep.Model, errors: tuple[float, ...]) -> Report:
    """What one runtime made of a result, with an error in each run."""
    right = np.array([0.25, 1.25, 2.75], np.float32)
    found = [compare({"y": right}, {"y": right + np.float32(error)}) for error in errors]
    verdicts = ("agrees" if each.ok else "differs" for each in found)
    runs = tuple(
        Run(f"feeds {at}", "cpu", verdict, comparison=each)
        for at, (verdict, each) in enumerate(zip(verdicts, found, strict=True))
    )
    return Report("one", "other", ("cpu",), runs, ModelFacts.of(model))


@pytest.mark.parametrize(
    ("model", "errors", "excused"),
    [
        (QUANTISED, (0.0, STEP, 0.0), {"feeds 1"}),
        (QUANTISED, (0.0, 20 * STEP, 0.0), set()),
        (QUANTISED, (0.0, np.nan, 0.0), set()),
        (QUANTISED, (STEP, STEP, 0.0), set()),
        (PLAIN, (0.0, STEP, 0.0), set()),
    ],
    ids=["a step", "many steps", "NaN", "mostly wrong", "no steps"],
)
def test_a_step_now_and_then_is_excused(model: ep.Model, errors: tuple[float, ...], excused: set[str]) -> None:
    assert {run.label for run in apart_by_few_steps(report(model, errors), "cpu", model, [FEEDS])} == excused
