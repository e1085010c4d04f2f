import gc
import subprocess
import sys

import numpy as np
import onnx_ir
import pytest
import torch

import entrepot as ep
from entrepot.exporters.options import as_dynamic

TEXT = """
<ir_version: 10, opset_import: ["" : 20]>
agraph (float[batch, 3] x) => (float[batch, 3] y) { y = Relu(x) }
"""


@pytest.fixture
def relu() -> ep.Model:
    return ep.load(onnx_ir.from_onnx_text(TEXT))


def test_an_object_of_no_known_framework_is_refused_with_what_is_taken():
    with pytest.raises(ep.InputError, match=r"cannot export a builtins\.int .*hint: give a model of PyTorch, Keras"):
        ep.export(3)


def test_a_file_of_unknown_kind_is_refused(tmp_path):
    with pytest.raises(ep.InputError, match=r"cannot tell what 'net\.h5' is"):
        ep.export("net.h5")


@pytest.mark.parametrize(
    "dynamic",
    [
        "always",
        3,
        None,
        {"x": 0},
        {"x": {"a": "batch"}},
        {"x": {0.5: "b"}},
        {"x": {0: 3}},
        {"x": {True: "b"}},
        {0: "b"},
        [0],
    ],
)
def test_dynamic_of_another_form_is_refused(dynamic):
    with pytest.raises(ep.InputError, match=r"hint: give .auto., .all., False, or names of axes"):
        ep.export(3, dynamic=dynamic)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (True, "auto"),
        ("auto", "auto"),
        (False, False),
        ({"x": {0: "batch", 1: None}}, {"x": {0: "batch"}}),
        ({"x": {"0": "batch", "-1": "width"}}, {"x": {0: "batch", -1: "width"}}),
        ({"x": ["batch", None, "width"]}, {"x": {0: "batch", 2: "width"}}),
        ({"x": ("batch",), "y": None}, {"x": {0: "batch"}, "y": {}}),
        ({"x.y": [0, -1]}, {"x.y": {0: "x_y_dim0", -1: "x_y_dim_1"}}),
        ({}, {}),
    ],
)
def test_dynamic_is_read_as_it_is_meant(given, meant):
    assert as_dynamic(given) == meant


def test_looking_an_object_up_loads_no_framework():
    code = (
        "import sys, entrepot as ep\n"
        "try: ep.export(object())\n"
        "except ep.InputError: pass\n"
        "sys.exit('torch' in sys.modules or 'onnxscript' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_framework_is_named_with_the_command_that_installs_it(tmp_path):
    (tmp_path / "net.pt2").write_bytes(b"")
    code = (
        "import sys, entrepot as ep\n"
        "sys.modules['torch'] = None\n"
        f"try: ep.export({str(tmp_path / 'net.pt2')!r})\n"
        'except ep.MissingDependencyError as error: sys.exit("entrepot[torch]" not in str(error))\n'
        "sys.exit(2)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_onnx_model_is_taken_as_it_is(relu):
    assert ep.export(relu).ir is relu.ir


def test_an_onnx_file_is_converted_and_verified_against_itself(relu, tmp_path):
    relu.save(tmp_path / "relu.onnx")
    model = ep.export(tmp_path / "relu.onnx", {"x": np.ones((2, 3), np.float32)}, opset=17)
    assert model.opset == 17
    assert model.report is not None
    assert model.report.ok


def test_text_is_cut_off_where_a_framework_has_it_only(relu):
    for model, sample in ((relu, None), (torch.nn.ReLU(), torch.ones(2))):
        with pytest.raises(ep.InputError, match="strings"):
            ep.export(model, sample, strings="cut", progress=False)
    with pytest.raises(ep.InputError, match="strings"):
        ep.export(torch.nn.ReLU(), torch.ones(2), strings="keep", progress=False)


def test_objects_that_were_there_are_spared_by_the_garbage_collector_meanwhile():
    class Counting(torch.nn.Module):
        def forward(self, x):
            if not torch.compiler.is_compiling():
                counts.append(gc.get_freeze_count())
            return x * 2

    counts: list[int] = []
    ep.export(Counting(), torch.ones(2), progress=False)
    assert min(counts) > 0 == gc.get_freeze_count()
    gc.freeze()
    try:
        ep.export(Counting(), torch.ones(2), progress=False)
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_an_onnx_model_cannot_be_given_other_axes(relu):
    with pytest.raises(ep.InputError, match="comes with its axes and names"):
        ep.export(relu, dynamic={"x": {1: "width"}})


def test_a_sample_that_an_onnx_model_does_not_take_is_refused(relu):
    with pytest.raises(ep.InputError, match=r"the sample gives \['z'\], the model takes \['x'\]"):
        ep.verify(relu, relu, {"z": np.ones((2, 3), np.float32)})


def test_progress_is_told_and_the_result_saved(relu, tmp_path):
    lines: list[str] = []
    ep.export(relu, path=tmp_path / "out.onnx", progress=lines.append)
    assert lines == [f"saving {tmp_path / 'out.onnx'}"]
    assert ep.load(tmp_path / "out.onnx").opset == 20


def test_a_path_stands_for_the_model_to_verify(relu, tmp_path):
    relu.save(tmp_path / "relu.onnx")
    x = np.ones((2, 3), np.float32)
    for sample in (None, x, (x,), {"x": x}, {"x": torch.ones(2, 3)}):
        assert ep.verify(relu, str(tmp_path / "relu.onnx"), sample, providers="cpu", tolerance=1e-3)


def test_every_option_of_export_is_read_as_it_is_meant(tmp_path):
    net = torch.nn.Linear(3, 2)
    names = {"input_names": "x", "output_names": ["y"], "dynamic": {"x": ["batch"]}}
    model = ep.export(net, torch.ones(4, 3), str(tmp_path / "net.onnx"), opset="18", tolerance=(1e-5, "1e-4"), **names)
    assert (model.opset, [spec.shape for spec in model.inputs]) == (18, [("batch", 3)])
    assert model.report


@pytest.mark.parametrize(
    "bad",
    [
        {"opset": True}, {"opset": "new"}, {"opset": 18.5}, {"verify": "no"}, {"verify": 1}, {"tolerance": "tight"},
        {"tolerance": True}, {"input_names": 3}, {"output_names": [3]}, {"path": 3}, {"path": b"x"}, {"progress": 3},
    ],
)  # fmt: skip
def test_an_option_that_makes_no_sense_is_refused_before_any_work(bad):
    with pytest.raises(ep.InputError, match=f"{next(iter(bad))} is "):
        ep.export(torch.nn.Linear(3, 2), torch.ones(4, 3), **bad)


@pytest.mark.parametrize(
    "bad", [{"providers": "c"}, {"providers": 3}, {"providers": []}, {"tolerance": {}}, {"progress": 3}]
)
def test_what_verify_cannot_take_is_refused(bad, relu):
    with pytest.raises(ep.InputError, match=next(iter(bad)).removesuffix("s")):
        ep.verify(relu, relu, **bad)
