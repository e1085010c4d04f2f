"""Large models are run a few times only, and still refuted where they are wrong."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.exporters.options import Judging
from entrepot.exporters.proof.prove import prove
from entrepot.parity import sparing, verify
from entrepot.parity.plan import plan_cases
from entrepot.parity.runner import Runner
from tests.parity.test_verify import Function, X, model_of, relu


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch):
    monkeypatch.setattr(sparing, "LARGE", 0)


def runs_of(report):
    return sorted((run.provider, run.label) for run in report.runs)


def test_onnxruntime_judges_every_size_and_ours_the_smallest():
    report = prove(Function(relu), model_of("y = Relu(x)"), X, Judging())
    assert report.ok
    assert runs_of(report) == [
        ("cpu", "batch=0"), ("cpu", "batch=1"),
        ("onnxruntime", "batch=1"), ("onnxruntime", "batch=5"), ("onnxruntime", "sample"),
    ]  # fmt: skip


def test_other_values_are_run_where_no_other_size_is_taken():
    report = prove(Function(relu, refuses=(1, 5)), model_of("y = Relu(x)"), X, Judging())
    assert ("onnxruntime", "other values") in runs_of(report)


def test_values_that_are_part_of_a_graph_are_noticed():
    model = model_of("y = Relu(x)")
    report = prove(Function(lambda x: np.full_like(x, X["x"].max())), model, X, Judging())
    assert {run.label for run in report.failures} >= {"batch=1", "batch=5"}


def test_ours_runs_all_where_onnxruntime_lacks_an_operator():
    cases = plan_cases(model_of("y = Relu(x)"), X, sparing=True)
    answers = [{"y": case.feeds["x"]} for case in cases]
    declined = [sparing.Run("every input", "onnxruntime", "declined", "no Gelu")]
    assert sparing.few(cases, answers, [declined, [], [], [], []]) == [0, 1, 2, 3, 4]
    assert sparing.few(cases, answers, [[], [], [], [], []]) == [3]


def test_ours_is_opened_once_for_full_inputs_and_empty_ones(monkeypatch):
    opened = []
    monkeypatch.setattr(
        verify,
        "Runner",
        lambda model, name, *rest, **options: opened.append(name) or Runner(model, name, *rest, **options),
    )
    report = prove(Function(relu), model_of("y = Relu(x)"), X, Judging())
    assert opened == ["onnxruntime", "cpu"]
    assert ("cpu", "batch=0") in runs_of(report)


def test_empty_inputs_are_not_tried_on_what_is_wrong_anyway():
    report = prove(Function(lambda x: -x), model_of("y = Relu(x)"), X, Judging())
    assert report.failures
    assert ("cpu", "batch=0") not in runs_of(report)


def test_integers_get_other_values():
    model = model_of("y = Relu(x)", "int32[batch, 3] x", "int32[batch, 3] y")
    cases = plan_cases(model, {"x": np.arange(12, dtype=np.int32).reshape(4, 3)}, sparing=True)
    assert [case.label for case in cases] == ["sample", "other values", "batch=5", "batch=1", "batch=0"]
