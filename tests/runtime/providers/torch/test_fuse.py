"""Patterns that torch's kernels run at once: those of the cpu provider, and its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import entrepot as ep
from tests.judges.graphs import assert_computes
from tests.op_cases.normal import normal as f32
from tests.runtime.providers.cpu.test_fuse import CHANGES as SHARED
from tests.runtime.providers.cpu.test_fuse import CONV, GEMM, LEAVES, MATMUL, built, feeds, model

OWN = [
    (GEMM, "Sigmoid(h)", "gemm_sigmoid"),
    (GEMM, "LeakyRelu<alpha = 0.2>(h)", "gemm_leakyrelu"),
    (MATMUL, "HardSwish(h)", "matmul_add_hardswish"),
    (MATMUL, 'Gelu<approximate = "tanh">(h)', "matmul_add_gelu"),
    (CONV, "Gelu(h)", "conv_add_gelu"),
    (CONV, "Clip(h, low, high)", "conv_add_clip"),
]
CHANGES = [*SHARED, *OWN]
FACES = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0], np.float32)


def session(proto: onnx.ModelProto) -> ep.Session:
    return ep.Session(ep.load(proto), providers=["torch"])


@pytest.mark.parametrize(("text", "activation", "kernel"), CHANGES)
def test_a_pattern_becomes_one_step(text: str, activation: str, kernel: str) -> None:
    assert f"{kernel}(" in session(built(text, activation)).source()


@pytest.mark.parametrize(("text", "activation", "kernel"), LEAVES)
def test_what_is_not_quite_the_pattern_is_left_alone(text: str, activation: str, kernel: str) -> None:
    assert kernel not in session(built(text, activation)).source()


@pytest.mark.parametrize(("text", "activation", "kernel"), SHARED + LEAVES)
def test_fused_or_not_the_result_is_that_of_onnxruntime(text: str, activation: str, kernel: str) -> None:
    proto, given = built(text, activation), feeds(text)
    before = {name: value.copy() for name, value in given.items()}
    it = session(proto)
    for _ in range(2):
        assert_computes(proto, given, it.run(given))
    for name, value in given.items():
        np.testing.assert_array_equal(value, before[name])


def onnxruntimes(proto: onnx.ModelProto, given: dict[str, np.ndarray]) -> np.ndarray:
    it = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return it.run(None, given)[0]


@pytest.mark.parametrize(("text", "activation", "kernel"), OWN)
def test_its_own_activations_are_those_of_onnxruntime(text: str, activation: str, kernel: str) -> None:
    proto, given = built(text, activation), feeds(text)
    np.testing.assert_allclose(session(proto).run(given)["y"], onnxruntimes(proto, given), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("text", "activation", "kernel"), CHANGES)
def test_what_is_not_finite_is_as_without_fusion(text: str, activation: str, kernel: str) -> None:
    proto, given = built(text, activation), feeds(text)
    given["x"].reshape(-1)[:] = np.resize(FACES, given["x"].size)
    got = session(proto).run(given)["y"]
    plain = ep.Session(ep.load(proto), providers=["reference"]).run(given)["y"]
    np.testing.assert_allclose(got, plain, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=["rows", "channels last"])
def test_a_residual_may_lie_in_memory_in_either_way(layout: Any) -> None:
    proto, given = built(CONV, "Relu(h)"), feeds(CONV)
    residual = torch.from_numpy(given["r"]).contiguous(memory_format=layout)
    got = session(proto).run({"x": torch.from_numpy(given["x"]), "r": residual})["y"]
    assert_computes(proto, given, {"y": got.numpy()})


@pytest.mark.parametrize("residual", [(4, 1, 1), (2, 4, 6, 6), (1, 1, 1, 6)], ids=str)
def test_a_residual_of_undeclared_shape_may_broadcast(residual: tuple[int, ...]) -> None:
    proto = built(CONV, "Relu(h)")
    proto.graph.input[1].type.tensor_type.ClearField("shape")
    given = {**feeds(CONV), "r": f32(*residual)}
    assert_computes(proto, given, session(proto).run(given))


def test_a_large_residual_is_added_by_onednn() -> None:
    text = "g (float[1, 3, 260, 260] x, float[1, 8, 260, 260] r) => (float[1, 8, 260, 260] y)"
    text += "{ c = Conv<pads = [1, 1, 1, 1]>(x, w, b)  h = Add(r, c)  y = Relu(h) }"
    proto = model(text, w=f32(8, 3, 3, 3), b=f32(8))
    given = {"x": f32(1, 3, 260, 260), "r": f32(1, 8, 260, 260)}
    before = given["r"].copy()
    assert_computes(proto, given, session(proto).run(given))
    np.testing.assert_array_equal(given["r"], before)


MASKED = "g (float[N, 5] x) => (float[N, 5] y) { s = Softmax(x)  n = IsNaN(s)  REST }"


@pytest.mark.parametrize(
    ("rest", "fused"),
    [("y = Where(n, zero, s)", True), ("y = Where(n, s, zero)", False), ("t = Where(n, zero, s)  y = Add(t, s)", True)],
)
def test_nan_is_replaced_in_one_step(rest: str, fused: bool) -> None:
    proto = model(MASKED.replace("REST", rest), zero=np.zeros((), np.float32))
    x = f32(3, 5)
    x[1] = -np.inf
    it = session(proto)
    assert ("isnan_where(" in it.source()) == fused
    np.testing.assert_allclose(it.run({"x": x})["y"], onnxruntimes(proto, {"x": x}), rtol=1e-6)


def test_the_last_step_of_one_pattern_does_not_begin_another() -> None:
    """Attention whose values are constant ends in a product by a constant, which has a kernel of its own."""
    text = """g (float[2, 3, 20, 8] q, float[2, 3, 8, 20] k) => (float[2, 3, 20, 6] y)
    { s = MatMul(q, k)  p = Softmax(s)  y = MatMul(p, v) }"""
    given = {"q": f32(2, 3, 20, 8), "k": f32(2, 3, 8, 20)}
    for value in (f32(20, 6), f32(2, 3, 20, 6)):
        proto = model(text, v=value)
        assert_computes(proto, given, session(proto).run(given))
