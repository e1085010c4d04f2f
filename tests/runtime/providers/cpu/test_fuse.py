from __future__ import annotations

import numpy as np
import onnx
import pytest

import entrepot as ep
from tests.judges.graphs import assert_computes
from tests.op_cases.normal import normal as f32

HEAD = '<ir_version: 10, opset_import: ["": 22]>\n'


def model(text: str, **weights: np.ndarray) -> onnx.ModelProto:
    proto = onnx.parser.parse_model(HEAD + text)
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in weights.items())
    return proto


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


def built(text: str, activation: str) -> onnx.ModelProto:
    bounds = {"low": np.array(-0.5, np.float32), "high": np.array(0.5, np.float32)}
    weights = {"w": f32(4, 3, 3, 3), "b": f32(4)} if "Conv" in text else {"w": f32(4, 3), "b": f32(3)}
    return model(text.replace("ACT", activation), **weights, **bounds)


def session(proto: onnx.ModelProto) -> ep.Session:
    return ep.Session(ep.load(proto))


def feeds(text: str) -> dict[str, np.ndarray]:
    if "Conv" in text:
        small = "float[4, 1, 1] r" in text
        return {"x": f32(2, 3, 6, 6), "r": f32(4, 1, 1) if small else f32(2, 4, 6, 6)}
    if "MatMul" in text:
        return {"x": f32(2, 5, 4), "r": f32(2, 5, 3)}
    return {"x": f32(7, 4), **({"v": f32(4, 3)} if "float[4, 3] v" in text else {})}


@pytest.mark.parametrize(("text", "activation", "kernel"), CHANGES)
def test_a_pattern_becomes_one_step(text: str, activation: str, kernel: str) -> None:
    assert f"{kernel}(" in session(built(text, activation)).source()


@pytest.mark.parametrize(("text", "activation", "kernel"), LEAVES)
def test_what_is_not_quite_the_pattern_is_left_alone(text: str, activation: str, kernel: str) -> None:
    assert kernel not in session(built(text, activation)).source()


@pytest.mark.parametrize(("text", "activation", "kernel"), CHANGES + LEAVES)
def test_fused_or_not_the_result_is_that_of_onnxruntime(text: str, activation: str, kernel: str) -> None:
    proto, given = built(text, activation), feeds(text)
    before = {name: value.copy() for name, value in given.items()}
    it = session(proto)
    for _ in range(2):
        assert_computes(proto, given, it.run(given))
    for name, value in given.items():
        np.testing.assert_array_equal(value, before[name])


def test_nan_passes_through_a_fused_relu() -> None:
    x = np.array([[np.nan, 1, 2, 3]], np.float32)
    assert np.isnan(session(built(GEMM, "Relu(h)")).run({"x": x})["y"]).all()


def test_a_residual_of_undeclared_shape_may_broadcast() -> None:
    proto = built(CONV, "Relu(h)")
    proto.graph.input[1].type.tensor_type.ClearField("shape")
    given = {**feeds(CONV), "r": f32(4, 1, 1)}
    assert_computes(proto, given, session(proto).run(given))


@pytest.mark.parametrize("provider", ["cpu", "torch"])
@pytest.mark.parametrize("end", ["y = Identity(s)", "y = Relu(s)"])
def test_a_row_of_two_axes_makes_a_matrix_of_a_vector(provider: str, end: str) -> None:
    proto = model(
        f"g (float[5] x) => (float[1, 4] y) {{ p = MatMul(x, w)  s = Add(p, b)  {end} }}", w=f32(5, 4), b=f32(1, 4)
    )
    y = ep.Session(proto, providers=[provider]).run({"x": f32(5)})["y"]
    assert y.shape == (1, 4)
    assert_computes(proto, {"x": f32(5)}, {"y": y})


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
    proto, x = model(GELU.replace("REST", rest)), f32(3, 4)
    it = session(proto)
    assert ("gelu(" in it.source()) == (rest in WRITTEN.values())
    assert_computes(proto, {"x": x}, it.run({"x": x}))


GELU_BY_TANH = """g (float[N, 4] x) => (float[N, 4] y)
<float root = {0.7978846}, float c = {0.044715}, float cr = {0.0356774}, float one = {1.0}, float half = {0.5},
 float three = {3.0}, float two = {2.0}> { ARGUMENT t = Tanh(a)  p = Add(t, one)  REST }"""

ARGUMENTS = {
    "a power": "x3 = Pow(x, three)  cx3 = Mul(c, x3)  s = Add(x, cx3)  a = Mul(root, s)",
    "products": "x2 = Mul(x, x)  x3 = Mul(x2, x)  cx3 = Mul(x3, c)  s = Add(cx3, x)  a = Mul(s, root)",
    "x times a sum": "x2 = Pow(x, two)  cx2 = Mul(c, x2)  q = Add(one, cx2)  rx = Mul(root, x)  a = Mul(rx, q)",
    "a distributed root": "x3 = Pow(x, three)  cx3 = Mul(cr, x3)  rx = Mul(root, x)  a = Add(rx, cx3)",
}

OTHER_ARGUMENTS = {
    "another power": "x3 = Pow(x, two)  cx3 = Mul(c, x3)  s = Add(x, cx3)  a = Mul(root, s)",
    "another factor": "x3 = Pow(x, three)  cx3 = Mul(cr, x3)  s = Add(x, cx3)  a = Mul(root, s)",
    "a sum with one": "x3 = Pow(x, three)  cx3 = Mul(c, x3)  s = Add(x, cx3)  r = Mul(root, s)  a = Add(r, one)",
}


@pytest.mark.parametrize("rest", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize(
    "argument",
    [*ARGUMENTS.values(), *OTHER_ARGUMENTS.values()],
    ids=[*ARGUMENTS, *(f"not {n}" for n in OTHER_ARGUMENTS)],
)
def test_gelu_by_tanh_is_found_however_its_polynomial_is_written(argument: str, rest: str) -> None:
    proto = model(GELU_BY_TANH.replace("ARGUMENT", argument).replace("REST", rest))
    x = np.array([[-1e4, -3.0, -0.0, 0.0], [0.5, 2.0, 1e4, np.nan]], np.float32)
    it = session(proto)
    assert ("gelu(" in it.source()) == (argument in ARGUMENTS.values())
    assert_computes(proto, {"x": x}, it.run({"x": x}))


def test_constants_that_widen_a_result_make_it_no_gelu() -> None:
    text = (
        GELU.replace("[N, 4] y", "[1, 4] y")
        .replace("[N, 4] x", "[4] x")
        .replace("float half = {0.5}", "float[1, 1] half = {0.5}")
    )
    proto = model(text.replace("REST", WRITTEN["half of the sum"]))
    assert_computes(proto, {"x": f32(4)}, session(proto).run({"x": f32(4)}))


@pytest.mark.parametrize("producer", ["Conv<pads = [1, 1, 1, 1]>", "MatMul"])
def test_two_producers_of_one_sum_are_not_both_fused_with_it(producer: str) -> None:
    shape = "float[2, 3, 6, 6]" if "Conv" in producer else "float[2, 5, 3]"
    weights = [f32(*((3, 3, 3, 3) if "Conv" in producer else (3, 3)), of=name) for name in "vw"]
    text = f"g ({shape} x) => ({shape} y) {{ a = {producer}(x, v)  b = {producer}(x, w)  s = Add(a, b)  y = Relu(s) }}"
    proto = model(text, v=weights[0], w=weights[1])
    x = f32(2, 3, 6, 6) if "Conv" in producer else f32(2, 5, 3)
    assert_computes(proto, {"x": x}, session(proto).run({"x": x}))


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
    proto = model(SWISH.replace("TYPE", kind).replace("REST", rest))
    x = f32(3, 4).astype(np.float32 if kind == "float" else np.float16)
    it = session(proto)
    assert ("swish(" in it.source()) == is_swish
    assert_computes(proto, {"x": x}, it.run({"x": x}))
