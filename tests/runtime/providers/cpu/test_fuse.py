from __future__ import annotations

import numpy as np
import onnx
import pytest

import entrepot as ep

HEAD = '<ir_version: 10, opset_import: ["": 28]>\n'
RNG = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def model(text: str, **weights: np.ndarray) -> ep.Model:
    proto = onnx.parser.parse_model(HEAD + text)
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in weights.items())
    return ep.load(proto)


GEMM = "g (float[N, 4] x) => (float[N, 3] y) { h = Gemm(x, w, b)  y = ACT }"
MATMUL = "g (float[N, 5, 4] x, float[N, 5, 3] r) => (float[N, 5, 3] y) { m = MatMul(x, w)  h = Add(m, b)  y = ACT }"
CONV = """g (float[2, 3, 6, 6] x, float[2, 4, 6, 6] r) => (float[2, 4, 6, 6] y)
{ c = Conv<pads = [1, 1, 1, 1]>(x, w, b)  h = Add(c, r)  y = ACT }"""

CHANGES = [
    (GEMM, "Relu(h)", "gemm_relu"),
    (GEMM, "Tanh(h)", "gemm_tanh"),
    (GEMM, "Clip(h, low, high)", "gemm_clip"),
    (MATMUL, "Relu(h)", "matmul_add_relu"),
    (MATMUL, "Add(r, h)", "matmul_add_add"),
    (CONV, "Relu(h)", "conv_add_relu"),
    (CONV.replace("h = Add(c, r)", "h = Identity(c)"), "Relu(h)", "conv_relu"),
    (CONV.replace("h = Add(c, r)", "h = Add(r, c)"), "Relu(h)", "conv_add_relu"),
]

LEAVES = [
    (GEMM.replace("(float[N, 3] y)", "(float[N, 3] y, float[N, 3] h)"), "Relu(h)", "gemm_relu"),
    (GEMM.replace("float[N, 4] x", "float[N, 4] x, float[4, 3] v").replace("x, w", "x, v"), "Relu(h)", "gemm_relu"),
    (CONV.replace("float[2, 4, 6, 6] r", "float[4, 1, 1] r"), "Relu(h)", "conv_add"),
    (CONV.replace("float[2, 4, 6, 6] r", "float[?, ?, ?, ?] r"), "Relu(h)", "conv_add"),
    (MATMUL.replace("Add(m, b)", "Mul(m, b)"), "Relu(h)", "matmul_add"),
]


def built(text: str, activation: str) -> ep.Model:
    bounds = {"low": np.array(-0.5, np.float32), "high": np.array(0.5, np.float32)}
    weights = {"w": f32(4, 3, 3, 3), "b": f32(4)} if "Conv" in text else {"w": f32(4, 3), "b": f32(3)}
    return model(text.replace("ACT", activation), **weights, **bounds)


def feeds(text: str) -> dict[str, np.ndarray]:
    if "Conv" in text:
        small = "float[4, 1, 1] r" in text
        return {"x": f32(2, 3, 6, 6), "r": f32(4, 1, 1) if small else f32(2, 4, 6, 6)}
    if "MatMul" in text:
        return {"x": f32(2, 5, 4), "r": f32(2, 5, 3)}
    return {"x": f32(7, 4), **({"v": f32(4, 3)} if "float[4, 3] v" in text else {})}


@pytest.mark.parametrize(("text", "activation", "kernel"), CHANGES)
def test_a_pattern_becomes_one_step(text: str, activation: str, kernel: str) -> None:
    assert f"{kernel}(" in ep.Session(built(text, activation)).source()


@pytest.mark.parametrize(("text", "activation", "kernel"), LEAVES)
def test_what_is_not_quite_the_pattern_is_left_alone(text: str, activation: str, kernel: str) -> None:
    assert kernel not in ep.Session(built(text, activation)).source()


@pytest.mark.parametrize(("text", "activation", "kernel"), CHANGES + LEAVES)
def test_fused_or_not_the_result_is_that_of_the_reference(text: str, activation: str, kernel: str) -> None:
    it, given = built(text, activation), feeds(text)
    before = {name: value.copy() for name, value in given.items()}
    expected = ep.Session(it, providers=["reference"]).run(given)
    session = ep.Session(it)
    for _ in range(2):
        for name, value in session.run(given).items():
            np.testing.assert_allclose(value, expected[name], rtol=2e-5, atol=1e-6)
    for name, value in given.items():
        np.testing.assert_array_equal(value, before[name])


def test_nan_passes_through_a_fused_relu() -> None:
    x = np.array([[np.nan, 1, 2, 3]], np.float32)
    assert np.isnan(ep.Session(built(GEMM, "Relu(h)")).run({"x": x})["y"]).all()


def test_a_residual_of_undeclared_shape_may_broadcast() -> None:
    it = built(CONV, "Relu(h)")
    it.ir.graph.inputs[1].shape = None
    given = feeds(CONV)
    given["r"] = f32(4, 1, 1)
    plain = ep.Session(it).run(given)["y"]
    np.testing.assert_allclose(plain, ep.Session(it, providers=["reference"]).run(given)["y"], rtol=2e-5, atol=1e-6)


GELU = """g (float[N, 4] x) => (float[N, 4] y) <float root = {ROOT}, float one = {1.0}, float half = {0.5}>
{ d = Div(x, root)  e = Erf(d)  p = Add(e, one)  REST }""".replace("ROOT", "1.4142135")

WRITTEN = {
    "half of the sum": "h = Mul(half, p)  y = Mul(x, h)",
    "half of the product": "h = Mul(x, p)  y = Mul(h, half)",
    "half of x": "h = Mul(x, half)  y = Mul(h, p)",
}

NOT_GELU = {
    "another factor": "h = Mul(one, p)  y = Mul(x, h)",
    "another tensor": "h = Mul(half, p)  y = Mul(d, h)",
    "a square": "h = Mul(p, p)  y = Mul(x, h)",
    "a part that is read twice": "h = Mul(half, p)  t = Mul(x, h)  y = Add(t, p)",
}


@pytest.mark.parametrize("rest", [*WRITTEN.values(), *NOT_GELU.values()], ids=[*WRITTEN, *NOT_GELU])
def test_gelu_is_found_however_it_is_associated(rest: str) -> None:
    it = model(GELU.replace("REST", rest))
    session, x = ep.Session(it), f32(3, 4)
    assert ("gelu(" in session.source()) == (rest in WRITTEN.values())
    expected = ep.Session(it, providers=["reference"]).run({"x": x})["y"]
    np.testing.assert_allclose(session.run({"x": x})["y"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("producer", ["Conv<pads = [1, 1, 1, 1]>", "MatMul"])
def test_two_producers_of_one_sum_are_not_both_fused_with_it(producer: str) -> None:
    shape = "float[2, 3, 6, 6]" if "Conv" in producer else "float[2, 5, 3]"
    weights = (f32(3, 3, 3, 3), f32(3, 3, 3, 3)) if "Conv" in producer else (f32(3, 3), f32(3, 3))
    text = f"g ({shape} x) => ({shape} y) {{ a = {producer}(x, v)  b = {producer}(x, w)  s = Add(a, b)  y = Relu(s) }}"
    it = model(text, v=weights[0], w=weights[1])
    x = f32(2, 3, 6, 6) if "Conv" in producer else f32(2, 5, 3)
    expected = ep.Session(it, providers=["reference"]).run({"x": x})["y"]
    np.testing.assert_allclose(ep.Session(it).run({"x": x})["y"], expected, rtol=2e-5, atol=1e-6)


SWISH = "g (TYPE[N, 4] x) => (TYPE[N, 4] y) { s = Sigmoid(x)  REST }"


@pytest.mark.parametrize(
    ("kind", "rest", "is_swish"),
    [
        ("float", "y = Mul(x, s)", True),
        ("float", "y = Mul(s, x)", True),
        ("float", "y = Mul(s, s)", False),
        ("float", "h = Neg(x)  y = Mul(h, s)", False),
        ("float", "h = Mul(x, s)  y = Add(h, s)", False),
        ("float16", "y = Mul(x, s)", False),
    ],
)
def test_x_times_its_sigmoid_is_swish(kind: str, rest: str, is_swish: bool) -> None:
    it = model(SWISH.replace("TYPE", kind).replace("REST", rest))
    x = f32(3, 4).astype(np.float32 if kind == "float" else np.float16)
    session = ep.Session(it)
    assert ("swish(" in session.source()) == is_swish
    expected = ep.Session(it, providers=["reference"]).run({"x": x})["y"]
    np.testing.assert_allclose(session.run({"x": x})["y"], expected, rtol=1e-5 if kind == "float" else 1e-3)
