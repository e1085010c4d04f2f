from __future__ import annotations

import io
import json

import numpy as np
import onnx
import onnx.parser
import pytest
import rich.console

import entrepot as ep
from entrepot.parity.report import Report, Run
from entrepot.parity.report.facts import ModelFacts
from entrepot.parity.sources import ModelSource
from entrepot.parity.verify import verify

TEXT = """
<ir_version: 10, opset_import: ["" : 20, "ai.onnx.ml" : 3]>
net (float[batch, 3] x) => (float[batch, 2] y)
<float[3, 2] w = {1, 0, 0, 1, 1, 1}> { y = MatMul (x, w) }
"""
FIXED = {"x.1": "forward takes another\n  path from size 5 on"}
HOSTILE = "<b>\x1b[2J"


def model_with(**metadata):
    proto = onnx.parser.parse_model(TEXT)
    for key, value in metadata.items():
        proto.metadata_props.add(key=f"entrepot.{key}", value=value)
    return ep.load(proto)


@pytest.fixture
def model():
    notes = ["exported in eval mode", HOSTILE, "fixed: x.1 = 3: forward takes another path"]
    return model_with(fixed_axes=json.dumps(FIXED), conditions=json.dumps(["batch % 2 == 0"]), notes=json.dumps(notes))


@pytest.fixture
def report(model):
    return verify(ModelSource(model), model, [{"x": np.ones((1, 3), np.float32)}], providers=("reference",))


def test_a_verification_says_what_was_verified(report):
    assert report.facts.groups() == {
        "inputs": ["x: float32[batch, 3]"],
        "outputs": ["y: float32[batch, 2]"],
        "opset": ["ai.onnx 20, ai.onnx.ml 3"],
        "size": ["1 node, 1 weight (24 B)"],
        "fixed axes": ["x.1: forward takes another path from size 5 on"],
        "conditions": ["batch % 2 == 0"],
        "notes": ["exported in eval mode", HOSTILE],
    }


def test_a_proof_of_a_conversion_says_it_too(model):
    converted = ep.convert_opset(model, 18, verify=True)
    assert converted.report.facts.opsets == {"ai.onnx": 18, "ai.onnx.ml": 3}


@pytest.mark.parametrize("text", ["", "{", "7", "[" * 100_000, '{"a": [1]}', "[[1], null]", "NaN"])
def test_metadata_of_any_kind_breaks_nothing(text):
    facts = ModelFacts.of(model_with(fixed_axes=text, conditions=text, notes=text))
    assert all(isinstance(reason, str) for reason in facts.fixed_axes.values())
    assert all(isinstance(line, str) for line in (*facts.conditions, *facts.notes))


def test_the_page_begins_with_the_facts(report):
    page = report._repr_html_()
    assert page.index("x: float32[batch, 3]") < page.index("forward takes another path") < page.index("<details")
    assert "<b>" not in page


def test_the_text_has_the_facts_under_the_summary(report):
    shown = io.StringIO()
    rich.console.Console(file=shown, width=200).print(report)
    for text in (str(report), shown.getvalue()):
        lines = [line.rstrip() for line in text.splitlines()]
        assert lines[1] == "  inputs      x: float32[batch, 3]"
        assert lines[6:8] == ["  conditions  batch % 2 == 0", "  notes       exported in eval mode"]
        assert "\x1b" not in text


def test_the_json_has_the_facts(report):
    facts = json.loads(report.to_json())["facts"]
    assert facts["inputs"] == [{"name": "x", "dtype": "float32", "shape": ["batch", 3], "kind": "tensor"}]
    assert (facts["weights"], facts["weight_bytes"]) == (1, 24)
    assert list(facts["fixed_axes"]) == ["x.1"]


def test_of_many_inputs_the_first_are_shown(model):
    many = [f"past.{at}" for at in range(48)]
    facts = ModelFacts(tuple(ep.Model(model.ir).inputs) * 48, (), {"ai.onnx": 20}, 1, 0, 0, {}, notes=tuple(many))
    report = Report("a", "b", ("cpu",), (Run("sample", "cpu", "error", "broke"),), facts)
    assert str(report).count("... and 38 more") == 2
    assert report._repr_html_().count("<summary>42 more</summary>") == 2


def test_a_report_without_facts_has_none():
    report = Report("a", "b", ("cpu",), (Run("sample", "cpu", "error", "broke"),))
    assert json.loads(report.to_json())["facts"] is None
    assert 'class="facts"' not in report._repr_html_()
    assert str(report).splitlines()[1] == ""
