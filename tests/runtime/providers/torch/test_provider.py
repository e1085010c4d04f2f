"""What a user of ``providers=['torch']`` relies on: whose memory results are, where they are, what runs where."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import entrepot as ep
from entrepot.runtime import heap
from entrepot.runtime.providers.torch.provider import CompiledTorchProvider

HEAD = '<ir_version: 10, opset_import: ["": 18]>\n'
CHAIN = """g (float[64, 128] x, float[64, 128] z) => (float[64, 128] y, float[64, 128] t) {
    a = Add(x, z)  b = Mul(x, a)  c = Sub(a, b)  d = Exp(c)  e = Abs(d)  f = Sqrt(e)  t = Tanh(f)
    h = Mul(t, f)  i = Sigmoid(h)  j = Add(x, i)  k = Neg(j)  y = Relu(k) }"""


def model(text: str) -> ep.Model:
    return ep.load(onnx.parser.parse_model(HEAD + text))


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_steps_work_in_place_and_leave_what_was_fed_alone() -> None:
    proto = onnx.parser.parse_model(HEAD + CHAIN)
    feeds = {"x": f32(64, 128), "z": f32(64, 128, seed=1)}
    kept = {name: array.copy() for name, array in feeds.items()}
    session = ep.Session(proto, providers=["torch"])
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
    for _ in range(2):
        for got, wanted in zip(session.run(feeds).values(), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    for name, array in kept.items():
        np.testing.assert_array_equal(feeds[name], array)
    emitted = session._default.parts[0][1].emitted
    assert emitted is not None
    kernels = list(emitted.names.values())
    assert torch.relu_ in kernels
    assert torch.neg_ in kernels
    assert torch.tanh_ not in kernels  # its operand is read again


def test_a_result_that_is_a_constant_belongs_to_the_caller() -> None:
    text = """g (float[2] x, int64[1] n) => (float[2] y, float[2] s, float[2] z)
        <float[4] w = {1, 2, 3, 4}, int64[1] two = {2}> {
        zero = Constant<value = int64[1] {0}>()  y = Slice(w, zero, two)  s = Slice(w, n, two)  z = Neg(x) }"""
    session = ep.Session(model(text), providers=["torch"])
    feeds = {"x": f32(2), "n": np.array([0])}
    for name in ("y", "s"):
        result = session.run(feeds)[name]
        result += 1
        np.testing.assert_array_equal(session.run(feeds)[name], [1, 2])


OWNED = """g (float[A, B] x) =>
  (float[A, B] fed, float[B, A] turned, float[A, C] cut, float[2] constant, float[2] piece,
  seq(float[A, B]) both, float[A, B] made) <float[4] w = {1, 2, 3, 4}, int64[1] one = {1}, int64[1] three = {3}> {
    fed = Identity(x)  turned = Transpose(x)  cut = Slice(x, one, three, one)  piece = Slice(w, one, three)
    n = Shape<start = 0, end = 1>(x)  m = Sub(n, n)  two = Sub(three, one)  constant = Slice(w, m, two)
    made = Neg(x)  both = SequenceConstruct(x, made) }"""


@pytest.mark.parametrize("rows", [2, 2000])  # NumPy's kernels take few numbers, torch's many
@pytest.mark.parametrize("provider", ["torch", "torch:compile"])
def test_results_as_tensors_belong_to_the_caller_too(provider: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompiledTorchProvider, "backend", "eager")
    declared = f"float[{rows}, 40] x"
    session = ep.Session(model(OWNED.replace("float[A, B] x", declared, 1)), providers=[provider])
    x = torch.from_numpy(f32(rows, 40))
    kept = x.clone()
    for _ in range(2):
        results = session.run({"x": x})
        tensors = [*(each for name, each in results.items() if name != "both"), *results["both"]]
        assert [tensor[0].reshape(-1)[0].item() for tensor in tensors[3:5]] == [1, 2]
        for tensor in tensors:
            tensor.mul_(2).add_(1)
        torch.testing.assert_close(x, kept, rtol=0, atol=0)


def test_gradients_flow_past_results_as_tensors() -> None:
    """As where a session is the teacher of a module in training."""
    session = ep.Session(model("g (float[N, 3] x) => (float[N, 3] y, float[N, 3] z) { y = Relu(x)  z = Identity(x) }"),
                         providers=["torch"])  # fmt: skip
    x, weight = torch.randn(2, 3), torch.ones(3, requires_grad=True)
    results = session.run({"x": x})
    loss = sum((weight * result).sum() for result in results.values())
    assert isinstance(loss, torch.Tensor)
    loss.backward()
    torch.testing.assert_close(weight.grad, (x.relu() + x).sum(0))


def test_a_result_that_was_fed_is_a_copy() -> None:
    x = f32(4)
    y = ep.Session(model("g (float[4] x) => (float[4] y) { y = Identity(x) }"), providers=["torch"]).run({"x": x})["y"]
    y += 1
    np.testing.assert_array_equal(x, f32(4))


@pytest.mark.parametrize("change", [lambda x: x[::-1], lambda x: x.T, lambda x: np.broadcast_to(x[:1], x.shape)])
def test_feeds_that_lie_oddly_in_memory(change: Any) -> None:
    x = change(f32(4, 4))
    x.flags.writeable = False
    y = ep.Session(model("g (float[4, 4] x) => (float[4, 4] y) { y = Neg(x) }"), providers=["torch"]).run({"x": x})["y"]
    np.testing.assert_array_equal(y, -x)


@pytest.mark.parametrize("kind", [np.float32, np.uint16])
def test_a_reversed_axis_of_one_element(kind: Any) -> None:
    x = np.arange(3, dtype=kind)[None][::-1]
    x = np.lib.stride_tricks.as_strided(x, strides=(-x.itemsize, x.itemsize))
    text = {np.float32: "float", np.uint16: "uint16"}[kind]
    y = ep.Session(model(f"g ({text}[1, 3] x) => ({text}[1, 3] y) {{ y = Identity(x) }}"), providers=["torch"])
    np.testing.assert_array_equal(y.run({"x": x})["y"], x)


def test_tensors_come_back_where_tensors_were_fed() -> None:
    session = ep.Session(model("g (float[4] x) => (float[4] y) { y = Exp(x) }"), providers=["torch"])
    x = torch.from_numpy(f32(4)).requires_grad_()
    y = session.run({"x": x})["y"]
    assert isinstance(y, torch.Tensor)
    assert not y.requires_grad
    torch.testing.assert_close(y, torch.exp(x).detach())


@pytest.mark.parametrize("kind", ["bfloat16", "float8_e4m3fn", "float16"])
def test_results_of_types_that_numpy_lacks(kind: str) -> None:
    names = {"bfloat16": "bfloat16", "float8_e4m3fn": "float8e4m3fn", "float16": "float16"}
    code = {"bfloat16": 16, "float8_e4m3fn": 17, "float16": 10}[kind]
    text = f"g (float[3] x) => ({names[kind]}[3] y) {{ y = Cast<to = {code}>(x) }}"
    proto = onnx.parser.parse_model(HEAD.replace("18", "19") + text)
    y = ep.Session(proto, providers=["torch"]).run({"x": f32(3)})["y"]
    assert y.dtype == np.dtype(getattr(ml_dtypes, kind, kind))
    np.testing.assert_array_equal(y, f32(3).astype(y.dtype))


def test_shapes_are_computed_on_the_host_and_the_plan_says_so() -> None:
    text = """g (float[N, 2, 3] x) => (float[N, M] y) <int64[1] rest = {-1}> {
        s = Shape(x)  zero = Constant<value = int64[1] {0}>()  n = Gather(s, zero)
        two = Concat<axis = 0>(n, rest)  y = Reshape(x, two) }"""
    session = ep.Session(model(text), providers=["torch"])
    assert session.run({"x": f32(4, 2, 3)})["y"].shape == (4, 6)
    hows = {row.op_type: row.how for row in session.plan().placements}
    assert (hows["Shape"], hows["Gather"]) == ("host", "host")


def test_an_error_names_the_node() -> None:
    text = "g (float[N] x, float[M] z) => (float[K] y) { y = Add(x, z) }"
    with pytest.raises(ep.ExecutionError, match="Add"):
        ep.Session(model(text), providers=["torch"]).run({"x": f32(3), "z": f32(4)})


def test_memory_is_given_back() -> None:
    assert heap.keep() in (True, False)
    heap.trim()
    y = ep.Session(model("g (float[4] x) => (float[4] y) { y = Exp(x) }"), providers=["torch"]).run({"x": f32(4)})["y"]
    np.testing.assert_allclose(y, np.exp(f32(4)), rtol=1e-6)


def test_what_torch_has_no_kernel_for_runs_beside_it_in_the_same_memory() -> None:
    text = '<ir_version: 10, opset_import: ["": 18, "ai.onnx.ml": 3]>\n' + (
        'g (float[N, 3] x) => (float[N, 3] y) { a = Relu(x)  b = ai.onnx.ml.Normalizer<norm = "L2">(a)  y = Neg(b) }'
    )
    proto = onnx.parser.parse_model(text)
    x = f32(4, 3)
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    for fed in (x, torch.from_numpy(x)):
        (got,) = ep.Session(ep.load(proto), providers=["torch"]).run({"x": fed}).values()
        np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-6)
