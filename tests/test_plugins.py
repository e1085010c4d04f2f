"""Targets, providers, operators and passes that other distributions register."""

import sys

import numpy as np
import pytest

import entrepot as ep

NET = '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { y = Abs(x) }'

MODULE = """
import onnx_ir as ir
from entrepot.runtime.providers.cpu.provider import CpuProvider

def target(model, *, prefix=""):
    return prefix + model.ir.graph[0].op_type

class Provider(CpuProvider):
    name = "toy"

class Pass(ir.passes.InPlacePass):
    def call(self, model):
        for node in model.graph:
            node.doc_string = "seen"
        return ir.passes.PassResult(model, modified=True)

class Wrong(ir.passes.InPlacePass):
    def call(self, model):
        for node in model.graph:
            node.op_type = "Neg"
        return ir.passes.PassResult(model, modified=True)

def nothing():
    return None

broken = 3
"""

OPERATORS = """
import numpy as np
import entrepot as ep

@ep.op("toy.domain", "Twice")
def twice(x):
    return x * np.float32(2)
"""

ENTRIES = """
[entrepot.importers]
words = toy_plugin:target
broken = toy_plugin:broken
[entrepot.providers]
toy = toy_plugin:Provider
absent = toy_plugin_that_is_not_there:Provider
broken = toy_plugin:nothing
[entrepot.operators]
toy.domain = toy_operators
[entrepot.passes]
seen = toy_plugin:Pass
wrong = toy_plugin:Wrong
nothing = toy_plugin:nothing
"""


@pytest.fixture(autouse=True)
def _installed(tmp_path, monkeypatch):
    """A distribution as pip leaves it."""
    site = tmp_path / "site"
    info = site / "toy_plugin-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-plugin\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    (site / "toy_plugin.py").write_text(MODULE)
    (site / "toy_operators.py").write_text(OPERATORS)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    yield
    sys.modules.pop("toy_plugin", None)


def net():
    import onnx.parser

    return ep.load(onnx.parser.parse_model(NET))


def test_a_target_is_a_function_found_by_its_name():
    assert ep.to(net(), "words", prefix="only ") == "only Abs"
    assert ep.to(net(), "numpy")(np.array([-1, 2], np.float32)).tolist() == [1, 2]


def test_a_provider_runs_nodes_under_its_name():
    session = ep.Session(net(), providers=["toy"])
    assert session.run({"x": np.array([-1, 2], np.float32)})["y"].tolist() == [1, 2]
    assert {row.provider for row in session.plan().placements} == {"toy"}


def test_operators_are_imported_with_the_first_model_that_needs_them():
    import onnx.parser

    from entrepot.cli.info import describe

    text = NET.replace('"": 20', '"": 20, "toy.domain": 1').replace("Abs", "toy.domain.Twice")
    model = ep.load(onnx.parser.parse_model(text))
    assert describe(model)["custom_operators"] == {"toy.domain::Twice": "registered, toy_operators"}
    x = np.array([-1, 2], np.float32)
    assert ep.Session(model, providers="onnxruntime").run({"x": x})["y"].tolist() == [-2, 4]
    assert ep.to_numpy(model)(x).tolist() == [-2, 4]
    sys.modules["toy_operators"].twice.remove()
    assert describe(model)["custom_operators"] == {"toy.domain::Twice": "not registered here"}


def test_a_pass_runs_before_ours_and_its_result_is_proved():
    assert ep.simplify(net(), passes=["seen"]).ir.graph[0].doc_string == "seen"
    with pytest.raises(ep.VerificationError):
        ep.simplify(net(), passes="wrong")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ep.to(net(), "keras"), ep.InputError, "there are numpy, torch, broken, words"),
        (lambda: ep.to(net(), "broken"), ep.PluginError, "toy-plugin 1.2 registers 'broken'"),
        (
            lambda: ep.Session(net(), providers=["gpu"]),
            ep.InputError,
            "there are cpu, reference, onnxruntime, torch, torch:autotune, torch:compile, torch:cuda, "
            "torch:cuda:compile, torch:mps, cuda, absent",
        ),
        (lambda: ep.Session(net(), providers=["absent"]), ep.MissingDependencyError, "toy_plugin_that_is_not_there"),
        (lambda: ep.Session(net(), providers=["broken"]), ep.PluginError, "has no available and no place"),
        (lambda: ep.simplify(net(), passes=["no"]), ep.InputError, "registered passes: nothing, seen, wrong"),
        (lambda: ep.simplify(net(), passes=["nothing"]), ep.PluginError, "makes a NoneType"),
    ],
)
def test_what_is_missing_or_broken_is_named_with_its_distribution(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def test_doctor_says_of_each_provider_whether_it_is_ready():
    from entrepot.cli.doctor import examine

    states = examine()["providers"]
    assert states["toy"] == "ready"
    assert "toy_plugin_that_is_not_there" in states["absent"]
    assert "has no available" in states["broken"]
