"""Each verb on small models: what it prints, what it writes, how it ends."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx_ir
import pytest

from entrepot.cli.tested import TESTED
from entrepot.ir.io.read import load
from entrepot.ir.opset import convert
from entrepot.ir.opset.convert import can_convert

OFF_BY_A_BIT = "h = Constant <value = float {0.01}> ()  r = Relu(x)  y = Add(r, h)"


# --- info


def test_info_counts_what_is_in_a_model(entrepot, write):
    path = write(
        """w = Constant <value = float[2] {1.0, 2.0}> ()
           y = If (b) <then_branch = t () => (p) { p = Neg(x) }, else_branch = e () => (q) { q = Neg(x) }>""",
        inputs="bool b, float[batch, 3] x",
    )
    facts = entrepot.json("info", path)
    assert facts["operators"] == {"Neg": 2, "Constant": 1, "If": 1}
    assert facts["nodes"] == 4
    assert facts["opsets"] == {"ai.onnx": 20}
    assert facts["inputs"][1] == {
        "name": "x", "kind": "tensor", "dtype": "float32", "shape": ["batch", 3], "text": "x: float32[batch, 3]",
    }  # fmt: skip
    assert "x: float32[batch, 3]" in entrepot("info", path).stdout


def test_info_tells_the_weights_by_dtype(entrepot, tmp_path):
    text = """<ir_version: 10, opset_import: ["": 20]> net (float[2] x) => (float[2] y)
    <float[2] w = {1.0, 2.0}, int64[1] n = {3}> { y = Add(x, w) }"""
    onnx_ir.save(onnx_ir.from_onnx_text(text), tmp_path / "net.onnx")
    facts = entrepot.json("info", tmp_path / "net.onnx")
    assert facts["weights"] == 2
    assert facts["parameters"] == 3
    assert facts["weight_bytes_by_dtype"] == {"float": 8, "int64": 8}


# --- check


def test_check_tells_that_a_model_is_valid_and_who_runs_it(entrepot, relu):
    assert entrepot.json("check", relu)["providers"] == {"cpu": "", "onnxruntime": ""}
    assert "valid" in entrepot("check", relu).stdout


def test_a_valid_model_that_nobody_runs_is_unsupported(entrepot, fancy):
    facts = entrepot.json("check", fancy, "-p", "cpu", status=4)
    assert facts["valid"]
    assert "Fancy" in facts["providers"]["cpu"]


def test_a_model_whose_types_contradict_is_invalid(entrepot, write):
    path = write("y = Relu(x)", outputs="float[batch, 4] y")
    assert "4" in entrepot.json("check", path, status=3)["problem"]


@pytest.mark.parametrize(
    ("imports", "body", "named"),
    [
        ('"": 999', "y = Relu(x)", "opset 999 of ai.onnx is not known"),
        ('"": 20, "ai.onnx.ml": 999', "y = Relu(x)", "opset 999 of ai.onnx.ml is not known"),
        ('"": 999, "ai.onnx.ml": 3', "y = ai.onnx.ml.Normalizer(x)", "opset 999 of ai.onnx is not known"),
        ('"": 20, "my": 1', "y = my.f(x)", "opset 99 of ai.onnx is not known"),
    ],
)
def test_operators_of_the_future_are_not_valid(entrepot, write, imports, body, named):
    text = (
        f"""<ir_version: 10, opset_import: [{imports}]> net (float[batch, 3] x) => (float[batch, 3] y) {{ {body} }}"""
    )
    if "my" in imports:
        text += '<domain: "my", opset_import: ["": 99]> f (x) => (y) { y = Relu(x) }'
    path = write("y = Relu(x)")
    onnx_ir.save(onnx_ir.from_onnx_text(text), path)
    facts = entrepot.json("check", path, status=3)
    assert not facts["valid"]
    assert named in facts["problem"]
    assert "or below, or update onnx" in facts["problem"]
    assert "INVALID" in entrepot("check", path, status=3).stdout


def test_the_newest_opset_is_valid(entrepot, write):
    imports = f'"": {onnx.defs.onnx_opset_version()}, "ai.onnx.ml": {onnx.defs.onnx_ml_opset_version()}, "acme": 999'
    path = write("y = Relu(x)", head=f"<ir_version: 10, opset_import: [{imports}]>")
    assert entrepot.json("check", path)["valid"]


# --- run


def test_run_shows_the_outputs(entrepot, relu):
    facts = entrepot.json("run", relu, "-i", "x=[[-1, 0, 2.5]]")
    assert facts["outputs"]["y"] == {
        "kind": "tensor", "dtype": "float32", "shape": [1, 3], "min": 0.0, "max": 2.5, "mean": pytest.approx(2.5 / 3),
        "values": [[0.0, 0.0, 2.5]],
    }  # fmt: skip
    assert "[[0.0, 0.0, 2.5]]" in entrepot("run", relu, "-i", "x=[[-1, 0, 2.5]]").stdout


def test_run_makes_up_what_is_not_given_and_says_so(entrepot, relu):
    result = entrepot("run", relu, "--dim", "batch=4")
    assert "input 'x' is random: float32[4, 3]" in result.stderr


@pytest.mark.parametrize("provider", ["cpu", "reference", "onnxruntime"])
def test_run_takes_every_provider(entrepot, relu, provider):
    assert entrepot.json("run", relu, "-i", "x=ones[1,3]", "-p", provider)["outputs"]["y"]["max"] == 1.0


def test_run_shows_sequences_and_strings(entrepot, write, tmp_path):
    path = write(
        "s = SequenceConstruct(x, x)  t = StringConcat(w, w)",
        inputs="float[batch, 3] x, string[1] w",
        outputs="seq(float[batch, 3]) s, string[1] t",
    )
    words = ("run", path, "-i", "x=ones[1,3]", "-i", 'w=["ab"]')
    facts = entrepot.json(*words)["outputs"]
    assert [item["values"] for item in facts["s"]["items"]] == [[[1.0, 1.0, 1.0]]] * 2
    assert facts["t"]["values"] == ["abab"]
    assert "2 items" in entrepot(*words).stdout
    assert "sequence" in entrepot(*words, "--save", tmp_path / "out.npz", status=2).stderr
    assert not (tmp_path / "out.npz").exists()


def test_run_shows_numbers_of_types_numpy_lacks(entrepot, write):
    path = write("y = Cast <to = 16> (x)  q = Cast <to = 22> (x)", outputs="bfloat16[batch, 3] y, int4[batch, 3] q")
    facts = entrepot.json("run", path, "-i", "x=[[-1, 0, 2.5]]")["outputs"]
    assert (facts["y"]["dtype"], facts["y"]["values"]) == ("bfloat16", [[-1.0, 0.0, 2.5]])
    assert (facts["q"]["dtype"], facts["q"]["values"]) == ("int4", [[-1, 0, 2]])


def test_run_saves_all_outputs_to_one_file(entrepot, write, tmp_path):
    path = write("y = Relu(x)  file = Neg(x)", outputs="float[batch, 3] y, float[batch, 3] file")
    entrepot("run", path, "-i", "x=ones[2,3]", "--save", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as saved:
        assert sorted(saved) == ["file", "y"]
        np.testing.assert_array_equal(saved["file"], -np.ones((2, 3), np.float32))


def test_run_saves_each_output_in_the_folder_whatever_its_name(entrepot, tmp_path, write):
    path = write("y = Relu(x)")
    model = onnx_ir.load(path)
    model.graph.outputs[0].name = "../../y"
    onnx_ir.save(model, path)
    entrepot("run", path, "-i", "x=ones[2,3]", "--output-dir", tmp_path / "deep" / "out")
    (written,) = (tmp_path / "deep" / "out").iterdir()
    assert written.suffix == ".npy"
    np.testing.assert_array_equal(np.load(written), np.ones((2, 3), np.float32))


def test_a_failed_run_leaves_no_file(entrepot, relu, tmp_path):
    entrepot("run", relu, "-i", "x=ones[2,4]", "--save", tmp_path / "out.npz", status=2)
    assert [path.name for path in tmp_path.iterdir()] == ["relu.onnx"]


# --- convert


def test_convert_writes_the_other_opset_and_proves_it(entrepot, relu, tmp_path):
    facts = entrepot.json("convert", relu, "--opset", 17, "-o", tmp_path / "old.onnx")
    assert facts["verified"]
    assert onnx_ir.load(tmp_path / "old.onnx").opset_imports == {"": 17}


def test_convert_that_cannot_be_done_writes_nothing_and_names_every_reason(entrepot, write, tmp_path):
    path = write("y = Sin(x)  z = Cos(x)", outputs="float[batch, 3] y, float[batch, 3] z")
    facts = entrepot.json("convert", path, "--opset", 6, "--explain", status=4)
    assert not facts["possible"]
    assert len(facts["blockers"]) == 2
    error = entrepot("convert", path, "--opset", 6, "-o", tmp_path / "old.onnx", status=4).stderr
    assert "opset" in error
    assert not (tmp_path / "old.onnx").exists()


def test_a_conversion_that_changes_the_result_is_not_written(entrepot, relu, write, tmp_path, monkeypatch):
    wrong = load(write(OFF_BY_A_BIT, name="wrong"))
    right = convert.convert_opset
    # sessions convert too, to the hub's opset, and must get what they ask for
    monkeypatch.setattr(convert, "convert_opset", lambda model, to: wrong if to == 21 else right(model, to))
    words = ("convert", relu, "--opset", 21, "-o", tmp_path / "new.onnx")
    assert "NOT verified" in entrepot(*words, status=1).stdout
    assert entrepot.json(*words, status=1)["path"] is None
    assert not (tmp_path / "new.onnx").exists()
    entrepot(*words, "--no-verify")
    assert (tmp_path / "new.onnx").exists()


def test_convert_explains_without_writing(entrepot, relu, fancy):
    assert "possible" in entrepot("convert", relu, "--opset", 17, "--explain").stdout


def test_convert_explains_what_can_convert_tells(entrepot, write):
    path = write("y = NonZero(x)  z = Unique(x)", outputs="int64[2, n] y, float[m] z")
    told = entrepot.json("convert", path, "--opset", 6, "--explain", status=4)["blockers"]
    blockers = can_convert(load(path), 6)
    assert len(blockers) == 2
    assert [(item["message"], item["node"]) for item in told] == [(item.message, item.node) for item in blockers]


def test_convert_needs_a_place_for_the_result(entrepot, relu):
    assert "'-o'" in entrepot("convert", relu, "--opset", 17, status=2).stderr


def test_a_model_that_cannot_be_run_is_converted_and_called_unverified(entrepot, write, tmp_path):
    path = write("s = Constant <value = int64[2] {4, 3}> ()  y = Reshape (x, s)")
    facts = entrepot.json("convert", path, "--opset", 21, "-o", tmp_path / "new.onnx")
    assert not facts["verified"]
    assert "--input or --dim" in facts["not_verified_because"]
    words = ("convert", path, "--opset", 21, "-o", tmp_path / "new.onnx", "--require-proof")
    assert entrepot.json(*words, "--dim", "batch=4")["verified"]


def nobody_runs(write):
    """Models that nothing here runs, for different reasons."""
    return {
        "operator": write("y = acme.Fancy(x)", name="a", head='<ir_version: 10, opset_import: ["": 20, "acme": 1]>'),
        "inputs": write("s = Constant <value = int64[2] {4, 3}> ()  y = Reshape (x, s)", name="b"),
        "random": write("r = RandomNormalLike (x)  y = Add (r, x)", name="c"),
    }


@pytest.mark.parametrize("reason", ["operator", "inputs", "random"])
def test_what_cannot_be_proven_is_written_and_said_or_not_written_at_all(entrepot, write, tmp_path, reason):
    path, target = nobody_runs(write)[reason], tmp_path / "new.onnx"
    words = ("convert", path, "--opset", 21, "-o", target)
    facts = entrepot.json(*words, "--require-proof", status=1)
    assert (facts["verified"], facts["path"]) == (False, None)
    assert facts["not_verified_because"]
    assert "nothing is written; not proven: " in entrepot(*words, "--require-proof", status=1).stdout
    assert not target.exists()
    assert not entrepot.json(*words)["verified"]
    shown = entrepot(*words).stdout
    assert "\nnot proven: " in shown
    assert ("--input" in shown) == (reason == "inputs")  # others would not help
    assert target.exists()


def test_a_proof_cannot_be_required_and_left_out(entrepot, relu, tmp_path):
    words = ("convert", relu, "--opset", 21, "-o", tmp_path / "new.onnx", "--require-proof", "--no-verify")
    assert "exclude each other" in entrepot(*words, status=2).stderr


# --- compare


def test_compare_of_equal_models_is_ok_on_all_providers(entrepot, relu, write):
    other = write("z = Neg(x)  w = Neg(z)  y = Relu(w)", name="other")
    document = entrepot.json("compare", relu, other)
    assert document["ok"]
    ran = {run["provider"] for run in document["runs"] if run["verdict"] == "agrees"}
    assert ran == {"cpu", "onnxruntime"}
    assert {run["inputs"] for run in document["runs"]} >= {"sample", "other values", "batch=0"}


def test_compare_of_different_models_fails_and_tells_where(entrepot, relu, write):
    other = write(OFF_BY_A_BIT, name="other")
    result = entrepot("compare", relu, other, status=1)
    assert "NOT verified" in result.stdout
    assert "output 'y'" in result.stdout


def test_compare_takes_a_tolerance(entrepot, relu, write):
    other = write(OFF_BY_A_BIT, name="other")
    entrepot("compare", relu, other, "--atol", "0.02")
    entrepot("compare", relu, other, "--atol", "0.001", status=1)


def test_compare_writes_a_page(entrepot, relu, tmp_path):
    entrepot("compare", relu, relu, "--only-sample", "--html", tmp_path / "report.html")
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_missing_provider_is_a_usage_error_and_not_a_difference(entrepot, relu):
    assert "abacus" in entrepot("compare", relu, relu, "-p", "abacus", status=2).stderr


# --- doctor


def test_doctor_tells_versions_and_providers(entrepot):
    facts = entrepot.json("doctor")
    assert facts["packages"]["numpy"] == np.__version__
    assert facts["providers"]["cpu"] == "ready"
    assert facts["processors"] >= 1
    assert "no problems found" in entrepot("doctor").stdout


def test_doctor_tells_what_is_missing_and_what_clashes(entrepot, monkeypatch):
    monkeypatch.setattr("entrepot.cli.doctor._version", lambda name: None if name == "onnx" else "1")
    monkeypatch.setattr("entrepot.cli.doctor._owners_of_onnxruntime", lambda: ["onnxruntime", "onnxruntime-gpu"])
    problems = entrepot.json("doctor", status=5)["problems"]
    assert problems[0] == "onnx is not installed"
    assert problems[1].startswith("onnxruntime and onnxruntime-gpu overwrite")


def test_doctor_tells_what_it_was_tested_with(entrepot, monkeypatch):
    lines = (Path(__file__).parents[2] / "constraints.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    assert {name: pinned.get(name) for name in TESTED} == TESTED
    monkeypatch.setattr("entrepot.cli.doctor._version", lambda name: f"{TESTED.get(name, '1')}+cpu")
    assert "tested with" not in entrepot("doctor").stdout
    monkeypatch.setattr("entrepot.cli.doctor._version", lambda name: "0.0.1")
    assert f"0.0.1 (tested with {TESTED['onnx']})" in entrepot("doctor").stdout


def test_doctor_lists_what_others_register_without_importing_it(entrepot, tmp_path, monkeypatch):
    info = tmp_path / "toy-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[entrepot.providers]\ngpu = surely_not_there:Provider\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    facts = entrepot.json("doctor")
    assert facts["registered"]["providers"] == ["gpu (surely_not_there:Provider of toy 1.2)"]
    assert "gpu (surely_not_there:Provider of toy 1.2)" in entrepot("doctor").stdout


# --- what all verbs that read a model share


@pytest.mark.parametrize("words", [["info"], ["check"], ["run"], ["convert", "--opset", 21, "--explain"]])
@pytest.mark.parametrize("content", [b"", b"\x00\x01garbage", b"<html>not a model</html>", "half"])
def test_a_file_that_is_no_model_ends_with_3(entrepot, relu, tmp_path, words, content):
    path = tmp_path / "bad.onnx"
    path.write_bytes(relu.read_bytes()[:40] if content == "half" else content)
    verb, *options = words
    error = entrepot(verb, path, *options, status=3).stderr
    assert "bad.onnx" in error
    assert "Traceback" not in error
    assert entrepot.json(verb, path, *options, status=3)["error"]["type"] == "ModelFormatError"


def test_an_operator_nobody_has_ends_with_4(entrepot, fancy):
    error = entrepot.json("run", fancy, status=4)["error"]
    assert error["type"] == "UnsupportedOpError"
    assert "Fancy" in error["message"]


def test_a_folder_is_no_model(entrepot, tmp_path):
    assert "directory" in entrepot("info", tmp_path, status=2).stderr


@pytest.mark.parametrize("words", [["convert", "--opset", 21, "-o"], ["run", "--save"], ["export", "-o"]])
def test_a_folder_that_is_not_there_is_told_before_the_work(entrepot, relu, tmp_path, words):
    verb, *options = words
    error = entrepot(verb, relu, *options, tmp_path / "nowhere" / "net", status=2).stderr
    assert re.search("folder '.*nowhere' does not exist", error)


def test_the_process_ends_with_the_status_and_prints_one_json_object(relu, fancy):
    for words, status in ((["run", relu], 0), (["run", fancy], 4), (["run", "nowhere.onnx"], 2)):
        run = subprocess.run(
            [sys.executable, "-m", "entrepot", *map(str, words), "--json"], capture_output=True, text=True, check=False
        )
        assert run.returncode == status
        assert isinstance(json.loads(run.stdout), dict)
        assert run.stderr == ""


# --- info --nodes


NESTED = """<ir_version: 10, opset_import: ["": 20, "my": 1]> net (float[batch, 3] x, bool b) => (float[batch, 3] y) {
    h = my.f(x)
    s = Shape(x)
    r = Reshape(h, s)
    y = If (b) <then_branch = t () => (p) { p = Neg(x) }, else_branch = e () => (q) { o = Clip(r) q = Abs(o) }>
}
<domain: "my", opset_import: ["": 20]> f (x) => (y) { a = Cast<to = 1>(x) y = Relu(a) }"""


def test_info_lists_nodes_with_the_types_and_shapes_they_work_on(entrepot, tmp_path):
    onnx_ir.save(onnx_ir.from_onnx_text(NESTED), tmp_path / "net.onnx")
    nodes = entrepot.json("info", tmp_path / "net.onnx", "--nodes")["node_list"]
    told = [
        (node["graph"], node["op_type"], node["domain"], [spec["text"] for spec in node["inputs"] + node["outputs"]])
        for node in nodes
    ]
    batch = "float32[batch, 3]"
    assert told == [
        ("net", "f", "my", [f"x: {batch}", f"h: {batch}"]),
        ("net", "Shape", "ai.onnx", [f"x: {batch}", "s: int64[2]"]),
        ("net", "Reshape", "ai.onnx", [f"h: {batch}", "s: int64[2]", "r: float32[?, ?]"]),
        ("net", "If", "ai.onnx", ["b: bool[]", f"y: {batch}"]),
        ("net > t", "Neg", "ai.onnx", [f"x: {batch}", f"p: {batch}"]),
        ("net > e", "Clip", "ai.onnx", ["r: float32[?, ?]", "o: float32[?, ?]"]),
        ("net > e", "Abs", "ai.onnx", ["o: float32[?, ?]", "q: float32[?, ?]"]),
        ("my::f", "Cast", "ai.onnx", [f"x: {batch}", f"a: {batch}"]),
        ("my::f", "Relu", "ai.onnx", [f"a: {batch}", f"y: {batch}"]),
    ]
    text = entrepot("info", tmp_path / "net.onnx", "--nodes").stdout
    assert re.search(r"my::f +x: float32\[batch, 3\] +h: float32\[batch, 3\]", text)
    assert "node_list" not in entrepot.json("info", tmp_path / "net.onnx")


def test_info_lists_optional_values_that_are_left_out(entrepot, write):
    (node,) = entrepot.json("info", write("y = Clip(x, , h)", inputs="float[3] x, float h"), "--nodes")["node_list"]
    assert [spec and spec["name"] for spec in node["inputs"]] == ["x", None, "h"]


# --- simplify
