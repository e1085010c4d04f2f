"""Verbs that change a model: simplify and extract."""

from __future__ import annotations

import re

import onnx
import onnx_ir
import pytest

from entrepot.ir.io.read import load
from tests.cli.test_verbs import OFF_BY_A_BIT, nobody_runs

WASTEFUL = """a = Identity(x)  b = Relu(a)  c = Relu(x)  s = Shape(x)
    i = Constant <value_ints = [1]> ()  d = Gather(s, i)  r = Constant <value_ints = [-1]> ()
    t = Concat <axis = 0> (r, d)  e = Add(b, c)  idle = Exp(e)  y = Reshape(e, t)"""


def test_simplify_shows_what_went_and_proves_the_rest(entrepot, write, tmp_path):
    path = write(WASTEFUL)
    facts = entrepot.json("simplify", path, "-o", tmp_path / "small.onnx")
    assert facts["verified"]
    assert facts["before"]["operators"] == {
        "Constant": 2, "Relu": 2, "Add": 1, "Concat": 1, "Exp": 1, "Gather": 1, "Identity": 1, "Reshape": 1, "Shape": 1,
    }  # fmt: skip
    assert facts["before"]["nodes"] == 11
    small = onnx.load(tmp_path / "small.onnx")
    onnx.checker.check_model(small, full_check=True)
    assert facts["after"]["nodes"] == len(small.graph.node) < 8
    assert facts["after"]["bytes"] == pytest.approx((tmp_path / "small.onnx").stat().st_size, rel=0.05)
    assert facts["after"]["bytes"] < facts["before"]["bytes"]
    text = entrepot("simplify", path, "-o", tmp_path / "small.onnx").stdout
    assert re.search(r"nodes +11 +\d", text)
    assert re.search(r"  Exp +1 +0", text)
    assert "verified against" in text
    assert entrepot.json("compare", path, tmp_path / "small.onnx")["ok"]


def test_a_simplification_that_changes_the_result_is_not_written(entrepot, relu, write, tmp_path, monkeypatch):
    wrong = load(write(OFF_BY_A_BIT, name="wrong"))
    monkeypatch.setattr("entrepot.exporters.simplification.simplify", lambda model, **options: wrong)
    words = ("simplify", relu, "-o", tmp_path / "small.onnx")
    assert "NOT verified" in entrepot(*words, status=1).stdout
    assert entrepot.json(*words, status=1)["path"] is None
    assert not (tmp_path / "small.onnx").exists()


@pytest.mark.parametrize("reason", ["operator", "inputs", "random"])
def test_simplify_says_what_it_cannot_prove(entrepot, write, tmp_path, reason):
    path, target = nobody_runs(write)[reason], tmp_path / "small.onnx"
    assert entrepot.json("simplify", path, "-o", target, "--require-proof", status=1)["path"] is None
    assert not target.exists()
    assert "\nnot proven: " in entrepot("simplify", path, "-o", target).stdout
    assert target.exists()


# --- extract


def test_extract_writes_a_part(entrepot, write, tmp_path):
    path = write("a = Relu(x)  b, c = Split<axis = 1, num_outputs = 2>(a)  y = Neg(b)", outputs="float[batch, 2] y")
    facts = entrepot.json("extract", path, "--from", "a", "--to", "b,y", "-o", tmp_path / "part.onnx")
    assert facts["inputs"] == ["a: float32[batch, 3]"]
    assert [text.partition(":")[0] for text in facts["outputs"]] == ["b", "y"]
    assert (facts["nodes"], facts["of_nodes"]) == (2, 3)
    onnx.checker.check_model(tmp_path / "part.onnx", full_check=True)
    text = entrepot("extract", path, "--from", "a", "--to", "b", "--to", "y", "-o", tmp_path / "same.onnx").stdout
    assert "2 of 3" in text
    assert (tmp_path / "same.onnx").read_bytes() == (tmp_path / "part.onnx").read_bytes()


def test_extract_tells_of_inputs_that_are_not_needed(entrepot, write, tmp_path):
    path = write("a = Relu(x)  y = Neg(a)")
    words = ("extract", path, "--from", "x,a", "--to", "y", "-o", tmp_path / "part.onnx")
    assert entrepot.json(*words)["unused_inputs"] == ["x"]
    assert "input 'x' is not needed" in entrepot(*words).stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--from", "b", "--to", "c"], "also needs 'x'"),
        (["--from", "x", "--to", "cc"], "did you mean 'c'"),
        (["--from", ",", "--to", "c"], "also needs 'x'"),
        (["--from", "x", "--to", ","], "without outputs"),
    ],
)
def test_extract_that_cannot_be_done_writes_nothing(entrepot, write, tmp_path, words, told):
    path = write("a = Relu(x)  b = Neg(a)  c = Add(a, b)  y = Abs(c)")
    assert told in entrepot("extract", path, *words, "-o", tmp_path / "part.onnx", status=2).stderr
    assert not (tmp_path / "part.onnx").exists()


def test_a_name_with_a_comma_is_a_name(entrepot, write, tmp_path):
    path = write("y = Relu(x)")
    model = onnx_ir.load(path)
    model.graph.outputs[0].name = "y,1"
    onnx_ir.save(model, path)
    assert entrepot.json("extract", path, "--to", "y,1", "-o", tmp_path / "part.onnx")["outputs"][0].startswith("y,1:")
