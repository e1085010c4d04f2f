import subprocess
import sys

import numpy as np
import onnx_ir
import pytest

import entrepot as ep

TEXT = """
<ir_version: 10, opset_import: ["" : 20]>
agraph (float[batch, 3] x) => (float[batch, 3] y) { y = Relu(x) }
"""


@pytest.fixture
def relu() -> ep.Model:
    return ep.load(onnx_ir.from_onnx_text(TEXT))


def test_an_object_of_no_known_framework_is_refused_with_what_is_taken():
    with pytest.raises(ep.InputError, match=r"cannot export a builtins\.int .*hint: give a torch\.nn\.Module"):
        ep.export(3)


def test_a_file_of_unknown_kind_is_refused(tmp_path):
    with pytest.raises(ep.InputError, match=r"cannot tell what 'net\.h5' is"):
        ep.export("net.h5")


@pytest.mark.parametrize("dynamic", ["always", 3, {"x": 0}, {"x": {"0": "batch"}}])
def test_dynamic_of_another_form_is_refused(dynamic):
    with pytest.raises(ep.InputError, match=r"hint: give .auto., False, or names of axes"):
        ep.export(3, dynamic=dynamic)


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
