"""Convolutions and products by packed weights, with what follows them, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import entrepot as ep
from entrepot.runtime.providers.torch import private, vectors

FOLLOWING = {
    "nothing": "y = Identity(s)",
    "Relu": "y = Relu(s)",
    "LeakyRelu": "y = LeakyRelu<alpha = 0.2>(s)",
    "Clip": "y = Clip(s, low, high)",
    "Sigmoid": "y = Sigmoid(s)",
    "HardSwish": "y = HardSwish(s)",
    "Tanh": "y = Tanh(s)",
    "Swish": "g = Sigmoid(s)  y = Mul(s, g)",
    "Exp": "y = Exp(s)",
}


def draw(*shape: int) -> np.ndarray:
    return (np.random.default_rng(sum(shape)).standard_normal(shape) / 4).astype(np.float32)


def built(text: str, **weights: np.ndarray) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]> {text}')
    bounds = {"low": np.array(-0.5, np.float32), "high": np.array(0.25, np.float32)}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(v, k) for k, v in {**bounds, **weights}.items())
    return model


@pytest.fixture(params=["plain", "packed", "packed where MKL is slow"])
def choice(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With torch's private operators for products, and as if it had none."""
    monkeypatch.setattr(vectors, "is_mkl_narrow", lambda: "slow" in request.param)
    if request.param == "plain":
        monkeypatch.setattr(private, "linear", lambda: None)
        monkeypatch.setattr(private, "linear_of_rows", lambda: None)
    return request.param


def check(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, str]:
    """Compare, and say what nodes became."""
    session = ep.Session(model, providers=["torch"])
    results = session.run(feeds)
    peer = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for name, expected in zip(results, peer.run(None, feeds), strict=True):
        np.testing.assert_allclose(results[name], expected, rtol=2e-5, atol=2e-5)
        assert results[name].flags.c_contiguous
    return {row.op_type: row.how for row in session.plan().placements}


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("following", FOLLOWING)
def test_a_convolution_with_what_follows_it(choice: str, following: str, residual: bool) -> None:
    middle = "s = Add(c, r)" if residual else "s = Identity(c)"
    text = f"""g (float[2, 32, 20, 20] x, float[2, 48, 20, 20] r) => (float[2, 48, 20, 20] y) {{
        c = Conv<pads = [1, 1, 1, 1]>(x, w, b)  {middle}  {FOLLOWING[following]} }}"""
    model = built(text, w=draw(48, 32, 3, 3), b=draw(48))
    how = check(model, {"x": draw(2, 32, 20, 20), "r": draw(2, 48, 20, 20)})
    alone = not residual and following in ("nothing", "Exp", "Swish")  # the last is two steps when Conv is looked at
    assert ("packed" if alone else "fused") in how["Conv"]


@pytest.mark.parametrize(
    "attributes",
    ["pads = [0, 1, 2, 1]", "strides = [2, 2]", "dilations = [2, 2]", "group = 32", 'auto_pad = "SAME_UPPER"',
     'auto_pad = "VALID"'],
)  # fmt: skip
def test_other_windows(choice: str, attributes: str) -> None:
    per_group = 1 if "group" in attributes else 32
    text = f"g (float[1, 32, 24, 24] x) => (float[N, M, H, W] y) {{ c = Conv<{attributes}>(x, w)  y = Relu(c) }}"
    check(built(text, w=draw(64, per_group, 3, 3)), {"x": draw(1, 32, 24, 24)})


def test_sizes_that_are_known_only_when_it_runs() -> None:
    text = "g (float[N, 8, H, W] x) => (float[N, 8, I, J] y) { c = Conv(x, w)  y = Relu(c) }"
    model = built(text, w=draw(8, 8, 3, 3))
    session = ep.Session(model, providers=["torch"])
    peer = onnxruntime.InferenceSession(model.SerializeToString())
    for shape in ((1, 8, 9, 9), (3, 8, 20, 5)):
        feeds = {"x": draw(*shape)}
        np.testing.assert_allclose(session.run(feeds)["y"], peer.run(None, feeds)[0], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("following", FOLLOWING)
@pytest.mark.parametrize("shape", [(40, 64), (2, 20, 64)])
def test_a_product_with_what_follows_it(choice: str, shape: tuple[int, ...], following: str) -> None:
    dims = ", ".join(map(str, shape))
    text = f"g (float[{dims}] x) => (y) {{ p = MatMul(x, w)  s = Add(p, b)  {FOLLOWING[following]} }}"
    how = check(built(text, w=draw(64, 96), b=draw(96)), {"x": draw(*shape)})
    assert "fused" in how["MatMul"]


@pytest.mark.parametrize("transposed", [0, 1])
def test_gemm_with_an_activation(choice: str, transposed: int) -> None:
    text = f"g (float[40, 64] x) => (y) {{ p = Gemm<transB = {transposed}>(x, w, b)  y = Relu(p) }}"
    how = check(built(text, w=draw(*(96, 64) if transposed else (64, 96)), b=draw(96)), {"x": draw(40, 64)})
    assert how["Gemm"].startswith("fused")


def test_a_batch_of_another_size_than_was_packed_for(choice: str) -> None:
    text = "g (float[N, 64] x) => (y) { z = Slice(x, a, e)  p = MatMul(z, w)  y = Relu(p) }"
    model = built(text, w=draw(64, 96), a=np.array([0]), e=np.array([20]))
    check(model, {"x": draw(40, 64)})
