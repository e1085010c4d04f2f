"""Models as Python over NumPy: right, readable, and running without the model they come from."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
import ruff
import torch

import entrepot as ep
from entrepot.importers.numpy.weights import load_weights, write_weights
from entrepot.models_zoo import registry
from tests.judges.agreement import assert_as_expected
from tests.judges.bounds import expectations
from tests.op_cases import all_cases

RUFF = ruff.find_ruff_bin()
HEAD = '<ir_version: 10, opset_import: ["": 28]>\n'

LOOPS = """g (float[N] x, int64 n, bool c) => (float[N] y, float[K, N] s, float[N] z, float[N] w, float[K, N] u) {
    y, s = Loop(n, , x) <body = b (int64 i, bool go, float[N] a) => (bool on, float[N] a2, float[N] p) {
        on = Constant<value = bool {1}>()  a2 = Add(a, x)  p = Neg(a2)
    }>
    z = If(c) <then_branch = t () => (float[N] q) { q = Exp(x) }, else_branch = e () => (float[N] r) { r = Neg(x) }>
    w, u = Scan(x, s) <num_scan_inputs = 1, body = d (float[N] a, float[N] p) => (float[N] a2, float[N] o) {
        a2 = Add(a, p)  o = Identity(a2)
    }>
}"""
STRINGS = """g (string[N] x) => (string[N] y, bool[N] z) <string[1] w = {"it's \\"so\\""}> {
    y = StringConcat(x, w)  z = Equal(y, w)
}"""


def model(text: str) -> ep.Model:
    return ep.load(onnx.parser.parse_model(HEAD + text))


@functools.cache
def exported(name: str) -> ep.Model:
    built = registry.build(name)
    return ep.export(built.module, built.sample, verify=False)


CHEAP = ["dcgan_generator", "gru_classifier", "early_exit", "fixed_point"]
"""Exported in a second or two: convolutions, a recurrent layer, an If and a Loop."""


@functools.cache
def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(108, 5))


@functools.cache
def small() -> ep.Model:
    return ep.export(network(), (torch.zeros(1, 1, 8, 8),), verify=False)


@pytest.mark.parametrize("name", CHEAP)
def test_a_model_of_the_zoo_computes_what_the_module_does(name: str, tmp_path: Path) -> None:
    built, function = registry.build(name), ep.to_numpy(exported(name), source=tmp_path)
    session = ep.Session(exported(name), providers=["onnxruntime"])
    rng = np.random.default_rng(0)
    feeds = _sampled(exported(name), built, rng)
    expected = session.run(feeds)
    results = function(*feeds.values())
    results = results if isinstance(results, tuple) else (results,)
    assert ep.compare(expected, dict(zip(expected, results, strict=True)))
    same = ep.Session(exported(name), providers=["reference"]).run(feeds)
    for plain, result in zip(same.values(), results, strict=True):
        np.testing.assert_array_equal(plain, result, strict=True)


def _sampled(model: ep.Model, built: registry.ZooModel, rng: np.random.Generator) -> dict[str, np.ndarray]:
    from entrepot.exporters.sample import Sample
    from entrepot.exporters.structure import flatten_call
    from entrepot.exporters.torch.arrays import TORCH

    call = flatten_call(Sample.of(built.samples[-1]), built.module.forward, TORCH)
    return {spec.name: tensor.numpy() for spec, tensor in zip(model.inputs, call.tensors, strict=True)}


@pytest.mark.parametrize("name", CHEAP)
def test_the_text_is_what_a_formatter_would_leave_and_a_linter_pass(name: str, tmp_path: Path) -> None:
    ep.to_numpy(exported(name), source=tmp_path)
    for command in (["format", "--diff"], ["check", "--select", "E4,E7,E9,F,I,B,UP,RUF100"]):
        told = subprocess.run(
            [RUFF, *command, "--isolated", tmp_path / "model.py"], capture_output=True, text=True, check=False
        )
        assert told.returncode == 0, told.stdout


def test_the_text_says_which_module_and_line_a_step_comes_from(tmp_path: Path) -> None:
    text = ep.to_numpy(exported("dcgan_generator")).source
    assert re.search(r"^    # \S+ \(generative\.py:\d+\)$", text, re.MULTILINE)
    assert 'weights["3.weight"]' in ep.to_numpy(small()).source


def test_a_fresh_process_needs_neither_the_model_nor_its_framework(tmp_path: Path) -> None:
    function = ep.to_numpy(small(), source=tmp_path / "made" / "here")
    code = """
import sys, numpy as np
from model import sequential
y = sequential(np.load("x.npy"))
assert not {"torch", "onnxruntime", "entrepot.exporters"} & set(sys.modules)
np.save("y.npy", y)
"""
    x = np.random.default_rng(0).random((3, 1, 8, 8), np.float32)
    np.save(tmp_path / "made" / "here" / "x.npy", x)
    same_kernels = {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}
    environment = {"PYTHONPATH": _path(), **same_kernels}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "made" / "here", check=True, env=environment)
    np.testing.assert_array_equal(np.load(tmp_path / "made" / "here" / "y.npy"), function(x))
    with torch.no_grad():
        expected = network()(torch.from_numpy(x)).numpy()
    assert ep.compare(expected, function(x))


def _path() -> str:
    return str(Path(__file__).resolve().parents[3])


def test_control_flow_is_pythons_own() -> None:
    function = ep.to_numpy(model(LOOPS))
    assert "for _ in trips(n):" in function.source
    assert "if truth(c):" in function.source
    feeds = {"x": np.array([1, 2], np.float32), "n": np.array(3), "c": np.array(False)}
    expected = ep.Session(model(LOOPS), providers=["onnxruntime"]).run(feeds)
    assert ep.compare(expected, dict(zip(expected, function(**feeds), strict=True)))
    empty = function(feeds["x"], np.array(0), np.array(True))
    assert empty[1].shape == (0, 0)


def test_shapes_are_written_out_and_weights_are_not() -> None:
    text = """g (float[6] x) => (float[3, 2] z) <int64[2] shape = {2, 3}, float[3] w = {1, 2, 3}> {
        a = Reshape(x, shape)  y = Mul(a, w)  z = Transpose<perm = [1, 0]>(y)
    }"""
    function = ep.to_numpy(model(text))
    assert "np.reshape(x, (2, 3))" in function.source
    assert 'np.multiply(a, weights["w"])' in function.source
    assert "np.transpose(y, (1, 0))" in function.source
    assert list(function.weights) == ["w"]


def test_strings_are_kept_whatever_is_in_them(tmp_path: Path) -> None:
    y, z = ep.to_numpy(model(STRINGS), source=tmp_path)(np.array(["", "a"], object))
    assert y.tolist() == ['it\'s "so"', 'ait\'s "so"']
    assert z.tolist() == [True, False]


HOSTILE = ['a"]\nraise SystemExit', "../../x", "{0}", "'''", '"""', "C:\\new", "weights", "np", "\u202e", ""]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_of_the_file_gets_into_the_text_unescaped(name: str, tmp_path: Path) -> None:
    proto = onnx.parser.parse_model(HEAD + "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    proto.graph.initializer[0].name = name or "w"
    proto.graph.node[0].input[:] = ["input" + name, name or "w"]
    proto.graph.input[0].name = "input" + name
    proto.graph.node[0].output[0] = proto.graph.output[0].name = "output" + name
    proto.graph.name = name or "g"
    proto.graph.node[0].metadata_props.add(key="entrepot.module", value=name)
    loaded = ep.load(proto)
    function = ep.to_numpy(loaded, source=tmp_path)
    np.testing.assert_array_equal(function(np.ones(2, np.float32)), [2, 3])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.py", "weights.npz"]


def test_results_are_arrays_and_none_of_them_a_weight() -> None:
    text = "g (float[2] x) => (float y, float[2] w) <float[2] w = {1, 2}> { y = ReduceSum<keepdims = 0>(x) }"
    function = ep.to_numpy(model(text))
    y, w = function(np.ones(2, np.float32))
    assert isinstance(y, np.ndarray)
    w += 1
    np.testing.assert_array_equal(function(np.ones(2, np.float32))[1], [1, 2])


def test_wrong_calls_say_how_the_function_is_called() -> None:
    function = ep.to_numpy(model("g (float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }"))
    with pytest.raises(ep.InputError, match=r"missing a required argument: 'z'.*g\(x, z\)"):
        function(np.ones(2, np.float32))


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(ep.StorageError):
        ep.to_numpy(small(), source=tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_node_that_nothing_runs_is_refused_by_name(tmp_path: Path) -> None:
    text = "g (float[2] x) => (float[2] y) { [odd] y = com.example.Odd(x) }"
    proto = onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 28, "com.example": 1]>' + text)
    with pytest.raises(ep.UnsupportedOpError, match="odd"):
        ep.to_numpy(proto, source=tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "dtype", [np.float64, np.bool_, np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4, object]
)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_weights_of_every_type_come_back(dtype: type, shape: tuple[int, ...], tmp_path: Path) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(str if dtype is object else np.float32)
    arrays = {"a.npy": array.astype(dtype), "file": np.ones(1, np.float32), "deep/er": array.astype(dtype)[..., None]}
    with open(tmp_path / "w.npz", "wb") as file:
        write_weights(file, arrays)
    found = load_weights(tmp_path / "w.npz")
    assert list(found) == list(arrays)
    for name, expected in arrays.items():
        assert found[name].dtype == expected.dtype
        assert found[name].shape == expected.shape
        assert found[name].tolist() == expected.tolist()


CASES = [case for case in all_cases() if not case.is_drawn]


@pytest.mark.parametrize("case", CASES[::11], ids=str)
def test_an_operator_case_as_a_function(case: object) -> None:
    results = ep.to_numpy(ep.load(case.model()))(*case.feeds().values())
    results = results if isinstance(results, tuple) else (results,)
    for oracle, expected in expectations(case).items():
        for got, wanted in zip(results, expected, strict=False):
            assert_as_expected(got, wanted, oracle)


def test_a_model_says_how_it_is_called() -> None:
    assert repr(ep.to_numpy(small())).startswith("<NumpyModel sequential(")


def test_a_size_that_the_export_fixed_is_not_taken_otherwise() -> None:
    class Mean(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sum(1) / x.shape[1]

    function = ep.to_numpy(ep.export(Mean(), (torch.ones(2, 5),), dynamic={"x": ["batch"]}))
    assert function(np.ones((3, 5), np.float32)).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match=r"x.shape\[1\] must be 5"):
        function(np.ones((2, 6), np.float32))
