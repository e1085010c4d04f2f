"""What a framework gets from the pipeline, shown with one of forty lines."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

import entrepot as ep
from entrepot.exporters.exporter import Captured
from entrepot.exporters.notes import Fixed
from tests.exporters.toy import Net, ToySource

X = np.random.default_rng(0).normal(size=(1, 4)).astype(np.float32)
BIAS = np.array([1, -1, 0.5], np.float32)
WEIGHT = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
ABS = '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { y = Abs(x) }'
SAMPLE = (X, {"bias": BIAS})


def register(folder: Path, value: str, group: str = "exporters", distribution: str = "toy-exporter") -> None:
    """A distribution as pip leaves it."""
    info = folder / f"{distribution.replace('-', '_')}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[entrepot.{group}]\ntoy = {value}\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    yield tmp_path / "site"
    sys.modules.pop("toy_broken", None)


@pytest.fixture
def toy(folder: Path) -> None:
    register(folder, "tests.exporters.toy:EXPORTER")


def test_axes_names_structure_opset_and_proof_come_from_the_pipeline(toy):
    model = ep.export(Net(WEIGHT), SAMPLE, opset=17)
    assert [(spec.name, spec.shape) for spec in model.inputs] == [("x", ("batch", 4)), ("extra.bias", (3,))]
    assert [spec.name for spec in model.outputs] == ["y", "sums.0"]
    assert (model.opset, model.report.ok) == (17, True)
    assert {run.label for run in model.report.runs if run.ok} >= {"sample", "batch=2", "batch=0"}
    assert json.loads(model.metadata["entrepot.structure"])["outputs"] == {
        "dict": [["y", {"tensor": "y"}], ["sums", {"list": [[0, {"tensor": "sums.0"}]]}]]
    }
    assert model.metadata["entrepot.framework"] == "toy 1.0"
    assert any("x.1 = 4" in note for note in model.notes)
    assert "Identity" not in [node.op_type for node in model.ir.graph]
    assert "weight" in model.ir.graph.initializers
    x = np.ones((5, 4), np.float32)
    expected = Net(WEIGHT).forward(x, {"bias": BIAS})
    np.testing.assert_allclose(ep.Session(model).run([x, BIAS])["y"], expected["y"], rtol=1e-5, atol=1e-5)


def test_the_options_of_export_hold_for_it(toy):
    sample = (np.concatenate([X, X]), {"bias": BIAS})
    model = ep.export(Net(WEIGHT), sample, dynamic={"x": {0: "rows"}}, output_names=["a", "b"])
    assert model.inputs[0].shape == ("rows", 4)
    assert [spec.name for spec in model.outputs] == ["a", "b"]
    assert ep.export(Net(WEIGHT), sample, dynamic=False).inputs[0].shape == (2, 4)
    with pytest.raises(ep.ConversionError, match=r"axis 1 of 'x' cannot be dynamic as 'k'"):
        ep.export(Net(WEIGHT), sample, dynamic={"x": {1: "k"}})
    for refused in ({"share": True}, {"dynamic_shapes": ({0: "n"}, None)}):
        with pytest.raises(ep.InputError):
            ep.export(Net(WEIGHT), sample, **refused)


def test_what_it_translates_wrongly_is_caught(toy):
    square = np.eye(3, dtype=np.float32)
    sample = (np.full((3, 3), 2, np.float32), {"bias": BIAS})
    with pytest.raises(ep.VerificationError):
        ep.export(Net(square, operator="Mul"), sample)
    model = ep.export(Net(square), sample)
    assert ep.verify(Net(square), model, sample)
    assert not ep.verify(Net(2 * square), model, sample)


def test_captures_that_are_wrong_where_no_axis_varies_are_not_put_together(toy, monkeypatch):
    taken = []
    real = ToySource.capture

    def capture(self, prober, groups, options):
        taken.append((self.way, len(groups)))
        return real(self, prober, groups, options)

    monkeypatch.setattr(ToySource, "capture", capture)
    monkeypatch.setattr(ToySource, "ways", ("as it is", "in parts", "anew"))
    monkeypatch.setattr(ToySource, "joins", {"in parts": "as it is"})
    square = np.arange(9, dtype=np.float32).reshape(3, 3)
    with pytest.raises(ep.VerificationError) as caught:
        ep.export(Net(square, operator="Mul"), (np.full((3, 3), 2, np.float32), {"bias": BIAS}))
    assert taken[-1] == ("anew", 0)
    assert dict(taken) == {"as it is": 0, "anew": 0}
    assert "in parts: puts captures as it is together, which are wrong at the sizes" in " ".join(caught.value.__notes__)


def test_a_model_that_is_no_function_is_refused(toy, monkeypatch):
    monkeypatch.setattr(Net, "forward", lambda self, x, extra: {"y": x + np.random.default_rng().normal()})
    with pytest.raises(ep.ConversionError, match="two calls with the same inputs differ"):
        ep.export(Net(WEIGHT), SAMPLE)
    monkeypatch.setattr(Net, "forward", lambda self, x, extra: x @ WEIGHT[1:])
    with pytest.raises(ep.InputError, match="the net does not take the sample: ValueError"):
        ep.export(Net(WEIGHT), SAMPLE)


def test_calls_that_round_differently_are_those_of_a_function(toy, monkeypatch):
    factors = itertools.cycle(np.float32([1, 1 + 2e-7, 1 - 2e-7]))
    real = Net.forward

    def rounded(self, x, extra):
        results = real(self, x, extra)
        return {**results, "y": results["y"] * next(factors)}

    monkeypatch.setattr(Net, "forward", rounded)
    assert ep.export(Net(WEIGHT), SAMPLE).report.ok


def test_a_source_that_is_captured_at_concrete_sizes_only_says_so(toy, monkeypatch):
    real = ToySource.capture

    def concrete(self, prober, groups, options):
        fixed = {axis: Fixed("it is captured at the sample's sizes") for group in groups for axis in group.axes}
        prober.base = list(self.call.tensors)
        return Captured(real(self, prober, [], options).graph, [], fixed)

    monkeypatch.setattr(ToySource, "capture", concrete)
    model = ep.export(Net(WEIGHT), SAMPLE)
    assert (model.inputs[0].shape, model.report.ok) == ((1, 4), True)
    assert "captured at the sample's sizes" in " ".join(model.notes)
    with pytest.raises(ep.ConversionError, match=r"x\.0 cannot be dynamic as 'rows'"):
        ep.export(Net(WEIGHT), SAMPLE, dynamic={"x": {0: "rows"}})


def test_operands_of_two_types_are_no_lack_of_onnxruntime(toy, monkeypatch):
    def ill_typed(self, prober, groups, options):
        graph = ir.from_onnx_text("""<ir_version: 10, opset_import: ["": 20]>
            net (float[1, 4] x, float[3] b) => (float[1, 3] y, float[3] sums) <int64 none = {0}, int64[1] axis = {0}>
            { d = Cast<to = 11>(b)  equal = Equal(d, none)  w = Cast<to = 1>(equal)  z = Relu(b)
              y = Unsqueeze(z, axis)  sums = Mul(w, z) }""")
        return Captured(graph, [])

    monkeypatch.setattr(
        Net, "forward", lambda self, x, extra: {"y": np.maximum(extra["bias"], 0)[None], "sums": [extra["bias"] * 0]}
    )
    monkeypatch.setattr(ToySource, "capture", ill_typed)
    with pytest.raises(ep.VerificationError, match="'A' is double and its input 'B' int64, where both are of one type"):
        ep.export(Net(WEIGHT), SAMPLE, dynamic=False)


def test_a_folder_is_recognised_by_what_it_contains(toy, tmp_path):
    (tmp_path / "net").mkdir()
    np.savetxt(tmp_path / "net" / "toy.txt", WEIGHT)
    assert ep.export(tmp_path / "net", SAMPLE).report
    (tmp_path / "empty").mkdir()
    with pytest.raises(ep.InputError, match="cannot tell what"):
        ep.export(tmp_path / "empty", SAMPLE)


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("import surely_not_installed", "toy_broken:EXPORTER", "needs 'surely_not_installed', which is not installed"),
        ("1 / 0", "toy_broken:EXPORTER", "cannot be imported: ZeroDivisionError"),
        ("EXPORTER = 3", "toy_broken:EXPORTER", "has no name and no recognises and no export and no verify"),
        ("", "toy_broken:MISSING", "cannot be imported: AttributeError"),
    ],
)
def test_a_broken_registration_is_an_error_of_its_distribution_only_when_it_is_needed(folder, text, value, message):
    register(folder, value)
    (folder / "toy_broken.py").write_text(text)
    assert ep.export(
        ir.from_onnx_text('<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { y = Abs(x) }')
    )
    with pytest.raises(ep.MissingDependencyError, match=rf"toy-exporter 1\.2 registers 'toy' .* {message}"):
        ep.export(Net(WEIGHT), SAMPLE)
    register(folder, "tests.exporters.toy:EXPORTER", distribution="toy-working")
    assert ep.export(Net(WEIGHT), SAMPLE).report


CONTENTS = {
    "a safetensors file": b'\x40\0\0\0\0\0\0\0{"a":{}}',
    "a GGUF file": b"GGUF\x03\0\0\0",
    "a Python pickle": b"\x80\x04\x95\0",
}


@pytest.mark.parametrize("what", CONTENTS)
@pytest.mark.parametrize("suffix", [".bin", ".onnx", ".model", ".pt", ".pth", ".safetensors"])
def test_a_file_is_known_by_its_contents_before_its_name(what, suffix, tmp_path):
    (tmp_path / f"net{suffix}").write_bytes(CONTENTS[what])
    with pytest.raises(ep.InputError, match=f"cannot export .*: it is {what}"):
        ep.export(tmp_path / f"net{suffix}")


def test_an_onnx_model_may_have_any_name(tmp_path):
    model = ep.load(
        ir.from_onnx_text('<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { y = Abs(x) }')
    )
    for name in ("net.pt", "net.bin", "net"):
        model.save(tmp_path / name)
        assert ep.export(tmp_path / name, opset=18).report


class Lonely(Net):
    """A net that does nothing with a single row."""

    def forward(self, x, extra):
        found = super().forward(x, extra)
        return {"y": found["y"] * (len(x) > 1), "sums": [found["sums"][0] * (len(x) > 1)]}


def test_a_size_of_one_that_the_graph_gets_wrong_costs_that_size_and_not_the_axis(toy):
    sample = (np.concatenate([X, X]), {"bias": BIAS})
    model = ep.export(Lonely(WEIGHT), sample)
    assert (model.inputs[0].shape, model.report.ok) == (("batch", 4), True)
    assert any(note.startswith("x.0 is at least 2: the graph does not follow other sizes") for note in model.notes)
    assert "x.0" not in model.metadata["entrepot.fixed_axes"]
    with pytest.raises(ep.InputError, match=r"axis 0 of 'x' is 1, but the model was made for batch >= 2"):
        ep.Session(model).run([X, BIAS])


def test_a_size_that_the_graph_gets_wrong_does_not_exclude_the_size_of_the_sample(toy):
    class ByOne(Net):
        """One row alone is doubled, which the capture overlooks; the sample has none."""

        def forward(self, x, extra):
            return super().forward(x * (2 if len(x) == 1 else 1), extra)

    model = ep.export(ByOne(WEIGHT), (X[:0], {"bias": BIAS}))
    assert model.inputs[0].shape == (0, 4)
    assert model.report.ok


def test_sizes_that_the_capture_leaves_open_follow_from_the_inputs(toy: None) -> None:
    model = ep.export(Net(WEIGHT), SAMPLE)
    assert [spec.shape for spec in model.outputs] == [("batch", 3), (3,)]
