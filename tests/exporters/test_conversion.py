"""``convert_opset(..., verify=True)``: proved, caught, or called unproved."""

from __future__ import annotations

import locale
from typing import Any

import numpy as np
import onnx.parser
import pytest
import torch

import entrepot as ep
from entrepot.exporters.proof.judge import OnnxReference
from entrepot.ir.opset import rules
from tests.ir.opset.evaluate import parse

SOFTMAX = "y = Softmax<axis = 0>(x)"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Break a step: it then leaves the node as it is."""

    def break_step(*step: Any) -> None:
        assert rules.find(rules.Step("", *step)) is not None
        monkeypatch.setitem(rules._rules, rules.Step("", *step), rules.keep)
        rules.route.cache_clear()

    yield break_step
    rules.route.cache_clear()


def test_without_verify_nothing_is_run() -> None:
    assert ep.convert_opset(parse(SOFTMAX, 13), 11).report is None


def test_a_proof_comes_with_the_model() -> None:
    report = ep.convert_opset(parse(SOFTMAX, 13), 11, verify=True).report
    assert report is not None
    assert report.ok
    assert {run.provider for run in report.ran} == {"cpu", "onnxruntime"}


def test_a_model_that_is_there_already_is_itself() -> None:
    model = parse(SOFTMAX, 13)
    assert ep.convert_opset(model, 13, verify=True) is model


@pytest.mark.parametrize(("have", "want"), [(13, 11), (11, 13)])
def test_a_wrong_adapter_is_caught_in_either_direction(have: int, want: int, broken: Any) -> None:
    model = parse(SOFTMAX, have)
    broken("Softmax", have, want)
    ep.convert_opset(model, want)
    with pytest.raises(ep.VerificationError, match="does not compute the same") as caught:
        ep.convert_opset(model, want, verify=True)
    assert caught.value.report is not None
    assert caught.value.report.failures


def test_given_feeds_are_taken() -> None:
    model = parse("y = Gather(t, x)", 13, "int64[2] x) => (float[2] y", stored="float[3] t = {1, 2, 3}")
    assert ep.convert_opset(model, 11, verify=True, feeds={"x": np.array([2, 0])}).report.ok  # type: ignore[union-attr]
    for feeds in (np.array([2, 0]), [np.array([2, 0])], {"x": torch.tensor([2, 0])}, torch.tensor([2, 0])):
        assert ep.convert_opset(model, 11, verify=True, feeds=feeds).report


@pytest.mark.parametrize("feeds", [{}, {"z": 1}, 3, object(), {"x": np.ones(2)}, {"x": np.array([7, 0])}, {"x": [[1]]}])
def test_feeds_that_do_not_fit_are_an_error_of_the_caller(feeds: Any) -> None:
    model = parse("y = Gather(t, x)", 13, "int64[2] x) => (float[2] y", stored="float[3] t = {1, 2, 3}")
    with pytest.raises(ep.InputError):
        ep.convert_opset(model, 11, verify=True, feeds=feeds)


@pytest.mark.parametrize(
    ("body", "reason"),
    [("y = RandomNormalLike(x)", "random"), ("h = Reshape(x, s) y = Identity(h)", "could not be run")],
)
def test_what_cannot_be_run_is_converted_and_called_unproved(body: str, reason: str) -> None:
    model = parse(body, 13, stored="int64[1] s = {7}")
    report = ep.convert_opset(model, 11, verify=True).report
    assert report is not None
    assert not report.ok
    assert reason in str(report.runs[0].message)
    assert "NOT verified" in report.summary()


def test_a_model_without_operators_of_ours_is_judged_by_onnxruntime() -> None:
    body = "y = com.microsoft.Inverse(x)"
    model = parse(body, 13, "float[3,3] x) => (float[3,3] y", imports=', "com.microsoft": 1')
    report = ep.convert_opset(model, 17, verify=True).report
    assert report is not None
    assert report.ok
    assert {run.provider for run in report.ran} == {"onnxruntime"}


def test_a_size_that_a_provider_refuses_in_the_original_too_is_no_failure():
    """At height 1 onnxruntime gives an empty result, where our runtime refuses a window larger than its image."""
    text = """<ir_version: 10, opset_import: ["": 20]> net (float[n, 1, h, 4] x) => (float[n, 1, k, 3] y) {
        y = AveragePool <kernel_shape = [2, 2]> (x) }"""
    model = ep.load(onnx.parser.parse_model(text))
    report = ep.convert_opset(model, 22, verify=True, feeds={"x": np.ones((2, 1, 4, 4), np.float32)}).report
    assert report.ok
    assert "h=1" in [run.label for run in report.noted if "window" in run.message]
    assert "cpu does the same with the original" in report.summary()
    assert {run.label for run in report.runs if run.verdict == "agrees"} >= {"sample", "n=1", "h=5"}


def test_a_judge_leaves_the_locale_alone() -> None:
    """That of onnx sets it to run StringNormalizer; torch's compiler could not read its own files afterwards."""
    before = locale.setlocale(locale.LC_ALL)
    lower = 'y = StringNormalizer<case_change_action = "LOWER", locale = "C">(x)'
    try:
        OnnxReference(parse(lower, 10, "string[N] x) => (string[N] y")).run({"x": np.array(["aB"], dtype=object)})
        assert locale.setlocale(locale.LC_ALL) == before
    finally:
        locale.setlocale(locale.LC_ALL, before)
