"""The pytest plugin as its users run it: in folders of their own, in this process and in others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch

import entrepot as ep
import entrepot.testing.parity

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[2]
IS_INSTALLED = any(point.name == "entrepot" for point in metadata.entry_points(group="pytest11"))
PLUGIN = () if IS_INSTALLED else ("-p", "entrepot.testing.plugin")
HEAD = """
import pytest
import torch
import entrepot as ep

torch.manual_seed(0)
NET = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Tanh()).eval()
X = torch.linspace(-1, 1, 24).reshape(3, 8)
"""


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """Once per process: pytester forgets modules that its runs import, and torch cannot be imported anew."""
    ep.export(torch.nn.Linear(1, 1), torch.ones(2, 1), opset=17)


@pytest.fixture(autouse=True)
def _at_a_desk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pytest prints failures twice where these say that it runs in CI."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("BUILD_NUMBER", raising=False)


def run(pytester: pytest.Pytester, text: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_it=HEAD + text)
    return pytester.runpytest_inprocess(*PLUGIN, "-p", "no:randomly", "-p", "no:xdist", *options)


def printed(result: pytest.RunResult) -> str:
    return "\n".join(result.outlines)


def pages(folder: Path) -> list[str]:
    return [path.read_text() for path in sorted(folder.rglob("*.html"))]


# export ---------------------------------------------------------------------------------------------------------------


def test_an_export_that_agrees_at_each_opset_gives_the_model(pytester: pytest.Pytester) -> None:
    text = """
def test_export(parity):
    model = parity.export(NET, X, tolerance=1e-4, opsets=[13, 17, 20], providers=["cpu", "onnxruntime"])
    assert (model.opset, model.inputs[0].shape) == (13, ("batch", 8))
    assert parity.export(NET, X).opset == 20
    assert parity.export(NET, X, opsets=17, dynamic=False).inputs[0].shape == (3, 8)
"""
    run(pytester, text).assert_outcomes(passed=1)


def test_a_failure_shows_the_table_and_writes_the_page(pytester: pytest.Pytester) -> None:
    text = "def test_export(parity): parity.export(NET, X, tolerance=0, opsets=[13, 20])"
    result = run(pytester, text, f"--basetemp={pytester.path / 'temp'}")
    result.assert_outcomes(failed=1)
    shown = printed(result)
    assert "the exported model does not compute what its source does" in shown
    assert re.search(r"sample +cpu +differs", shown)
    assert "testing/parity.py" not in shown  # the traceback ends at the line of the test
    (page,) = pages(pytester.path / "temp")
    assert "<table" in page
    assert re.search(r"report: .*temp.*\.html", shown.partition("= parity =")[2])


def test_each_opset_that_differs_has_a_page_in_the_folder_asked_for(pytester: pytest.Pytester) -> None:
    text = """
def test_export(parity):
    parity.export(NET, X, tolerance=0, opsets=[13, 20], verify=False)
"""
    result = run(pytester, text, "--parity-report=pages/deep")
    result.assert_outcomes(failed=1)
    names = sorted(path.name for path in (pytester.path / "pages" / "deep").iterdir())
    assert names == ["test_it.py_test_export-1.html", "test_it.py_test_export-2.html"]
    assert "opset 13:" in printed(result)
    assert "opset 20:" in printed(result)


def test_an_opset_without_a_form_of_the_model_is_a_failure_that_says_why(pytester: pytest.Pytester) -> None:
    text = """
class Net(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.grid_sample(x, torch.zeros(1, 2, 2, 2), align_corners=False)

def test_export(parity):
    parity.export(Net(), torch.ones(1, 1, 4, 4), opsets=[5, 20])
"""
    result = run(pytester, text)
    result.assert_outcomes(failed=1)
    assert "the model has no form at opset 5" in printed(result)


def test_a_wrong_argument_is_an_error_as_it_is_elsewhere(pytester: pytest.Pytester) -> None:
    text = """
def test_export(parity):
    with pytest.raises(ep.InputError):
        parity.export(NET, X, opsets=["new"])
    with pytest.raises(ep.InputError):
        parity.golden(ep.export(NET, X), "../up")
"""
    run(pytester, text).assert_outcomes(passed=1)


# golden ---------------------------------------------------------------------------------------------------------------

GOLDEN = """
import os

def test_golden(parity):
    with torch.no_grad():
        NET[0].weight[0, 0] = 0.25 + float(os.environ.get("MOVED", 0))
    parity.golden(ep.export(NET, X, verify=False), "net")
"""


def test_a_golden_file_is_written_when_asked_and_held_from_then_on(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = pytester.path / "golden" / "test_it" / "net.txt"
    first = run(pytester, GOLDEN)
    first.assert_outcomes(failed=1)
    assert "there is no golden/test_it/net.txt; pytest --parity-update writes it" in printed(first)
    assert not path.exists()

    written = run(pytester, GOLDEN, "--parity-update")
    written.assert_outcomes(passed=1)
    assert "wrote golden/test_it/net.txt" in printed(written)
    text = path.read_text()
    assert "in   input: float32[batch, 8]" in text
    assert "  0.weight float32[4, 8] = mean " in text
    assert re.search(r"^  \S+ <- Gemm\(input, 0.weight, 0.bias\) .*transB=1", text, re.MULTILINE)

    run(pytester, GOLDEN).assert_outcomes(passed=1)
    monkeypatch.setenv("MOVED", "1e-6")  # another machine's rounding
    run(pytester, GOLDEN).assert_outcomes(passed=1)
    assert "wrote" not in printed(run(pytester, GOLDEN, "--parity-update"))

    monkeypatch.setenv("MOVED", "0.25")
    changed = run(pytester, GOLDEN)
    changed.assert_outcomes(failed=1)
    lines = [line.removeprefix("E   ").strip() for line in changed.outlines]
    assert [line.partition(" = ")[0] for line in lines if line.startswith(("-  ", "+  "))] == [
        "-  0.weight float32[4, 8]", "+  0.weight float32[4, 8]",
        "-  output float32[1, 4]", "+  output float32[1, 4]",
    ]  # fmt: skip
    assert path.read_text() == text


def test_models_with_bodies_strings_and_no_feeds_have_a_portrait(pytester: pytest.Pytester) -> None:
    text = '''
import onnx

LOOP = """<ir_version: 10, opset_import: ["" : 20]> net (float[N] x, string[K] s) => (float[N] y, string[K] t) {
    n = Constant<value = int64 {3}>()
    y = Loop(n, , x) <body = b (int64 i, bool c, float[N] a) => (bool d, float[N] z) { d = Identity(c) z = Add(a, a) }>
    t = Identity(s)
}"""
PARTS = """<ir_version: 10, opset_import: ["" : 20]> net (seq(float[N]) x) => (float[M] y) {
    y = ConcatFromSequence<axis = 0>(x)
}"""
UNKNOWN = """<ir_version: 10, opset_import: ["" : 20, "acme" : 1]> net (float[N] x) => (float[M] y) {
    y = acme.Unknown(x)
}"""

def test_portraits(parity):
    for name, text in {"loop": LOOP, "parts": PARTS, "unknown": UNKNOWN}.items():
        parity.golden(ep.load(onnx.parser.parse_model(text)), name)
'''
    run(pytester, text, "--parity-update").assert_outcomes(passed=1)
    run(pytester, text).assert_outcomes(passed=1)
    loop = (pytester.path / "golden" / "test_it" / "loop.txt").read_text()
    assert "    body(i, c, a)\n      d <- Identity(c)\n      z <- Add(a, a)\n      returns d, z\n" in loop
    assert "  y float32[1] = 4.3224\n" in loop  # eight times the cosine of one
    parts = (pytester.path / "golden" / "test_it" / "parts.txt").read_text()
    assert "  y float32[4] = 0.5403 -0.41615 0.5403 -0.41615\n" in parts  # cosines of one and two, twice
    assert "results\n  none: UnsupportedOpError\n" in (pytester.path / "golden" / "test_it" / "unknown.txt").read_text()


# round trips ----------------------------------------------------------------------------------------------------------

IMPORTER = """
import pytest
import torch
from entrepot.importers import dispatch
from entrepot.testing import parity

class Widened(torch.nn.Module):
    def __init__(self, net): super().__init__(); self.net = net
    def forward(self, x): return self.net(x) * 1.5

class Fixed(torch.nn.Module):
    def __init__(self, net): super().__init__(); self.net = net
    def forward(self, x): return self.net(x.reshape(2, 8))

@pytest.fixture(autouse=True)
def importers(monkeypatch):
    import test_it
    made = {"same": test_it.NET, "wrong": Widened(test_it.NET), "fixed": Fixed(test_it.NET)}
    for module in (dispatch, parity):
        monkeypatch.setattr(module, "maker", lambda name: lambda model: made[name])
"""


@pytest.mark.parametrize(
    ("through", "options", "says"),
    [
        ("['same', 'same']", "structure=True", ""),
        ("'wrong'", "", "the model came back from wrong changed"),
        ("['fixed']", "", "axis 0 of 'input' cannot be dynamic as 'batch'"),
        ("'wrong'", "tolerance=10, structure=True", "nodes: 0 Mul became 1"),
    ],
)
def test_a_round_trip_brings_back_the_same_model(
    pytester: pytest.Pytester, through: str, options: str, says: str
) -> None:
    pytester.makeconftest(IMPORTER)
    text = f"""
def test_trip(parity):
    model = ep.export(NET, X)
    back = parity.round_trip(model, {through}, {options})
    assert back.inputs == model.inputs
"""
    result = run(pytester, text)
    result.assert_outcomes(passed=not says, failed=bool(says))
    assert says in printed(result)
    assert "During handling of" not in printed(result)


# in processes of their own --------------------------------------------------------------------------------------------


def started(folder: Path, *options: str, **variables: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}
    command = [sys.executable, "-m", "pytest", *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout


def test_an_unused_plugin_loads_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import sys

        def test_nothing():
            loaded = {name for name in sys.modules if name.partition(".")[0] in ("entrepot", "numpy", "onnx", "torch")}
            assert loaded <= {"entrepot", "entrepot.testing", "entrepot.testing.plugin"}, loaded
    """)
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # others load NumPy
    assert "1 passed" in started(pytester.path, "-p", "entrepot.testing.plugin", **alone)


def test_workers_of_xdist_write_their_files_and_tell_of_them(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it="""
        import onnx
        import entrepot as ep
        import pytest

        @pytest.mark.parametrize("op_type", ["Exp", "Neg"])
        def test_golden(parity, op_type):
            text = f'<ir_version: 10, opset_import: ["" : 20]> net (float[2] x) => (float[2] y) {{ y = {op_type}(x) }}'
            parity.golden(ep.load(onnx.parser.parse_model(text)), op_type)
        """
    )
    shown = started(pytester.path, *PLUGIN, "-n", "2", "--parity-update")
    assert "2 passed" in shown
    assert {path.name for path in pytester.path.glob("golden/*/*")} == {"Exp.txt", "Neg.txt"}
    summary = shown.partition("= parity =")[2]
    assert "wrote golden/test_it/Exp.txt" in summary
    assert "wrote golden/test_it/Neg.txt" in summary
