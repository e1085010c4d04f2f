"""Attention that exporters spelled out is one kernel, and still what it was."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import entrepot as ep
from entrepot.runtime.providers.torch import attention

KEYS = {
    "transposed": "t = Transpose<perm = [0, 1, 3, 2]>(k)",
    "reshaped": "f = Reshape(k, rows)  g = Transpose<perm = [0, 2, 1]>(f)  t = Reshape(g, heads)",
    "as it is": "t = Reshape(k, heads)",
}
ENDS = {
    "plain": "y = MatMul(p, v)",
    "guarded": "n = IsNaN(p)  z = Where(n, zero, p)  y = MatMul(z, v)",
}
MASKS = {
    "none": "s = MatMul(a, b)",
    "matrix": "c = MatMul(a, b)  s = Add(c, m)",
    "first": "c = MatMul(a, b)  s = Add(m, c)",
}


def built(keys: str, mask: str, end: str) -> onnx.ModelProto:
    text = f"""<ir_version: 10, opset_import: ["": 18]>
    g (float[16, 3, 4, 8] q, float[16, 3, 5, 8] k, float[16, 3, 5, 6] v, float[16, 1, 4, 5] m) => (float[16, 3, 4, 6] y)
    <float zero = {{0}}, float half = {{0.5}}, int64[3] rows = {{-1, 5, 8}}, int64[4] heads = {{16, 3, 8, 5}}> {{
        {KEYS[keys]}  a = Mul(q, half)  b = Mul(t, half)  {MASKS[mask]}  p = Softmax<axis = -1>(s)  {ENDS[end]} }}"""
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("keys", KEYS)
def test_it_is_one_kernel_and_right(keys: str, mask: str, end: str) -> None:
    rng = np.random.default_rng(0)
    shapes = {"q": (16, 3, 4, 8), "k": (16, 3, 5, 8), "v": (16, 3, 5, 6), "m": (16, 1, 4, 5)}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    feeds["m"][0, 0, 1, 2:] = -np.inf
    if mask != "none":
        feeds["m"][1, 0, 3] = -np.inf  # a query that sees no key
    model = built(keys, mask, end)
    session = ep.Session(model, providers=["torch"])
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)[0]
    np.testing.assert_allclose(session.run(feeds)["y"], expected, rtol=1e-5, atol=1e-6)
    how = {row.op_type: row.how for row in session.plan().placements}["Softmax"]
    assert ("fused" in how) == (mask == "none" or end == "guarded")


OPEN = """<ir_version: 10, opset_import: ["": 18]>
g (float[B, 3, N, 8] q, float[B, 3, M, 8] k, float[B, 3, M, 6] v, float[B, 1, N, M] m) => (float[B, 3, N, 6] y)
<float zero = {0}, float half = {0.5}, int64[1] minus = {-1}, int64[1] low = {-2}, int64[1] first = {0},
 int64[1] far = {9223372036854775807}, float[?, ?, ?, ?] t, float[?, ?, ?] f> {
    s = Shape(k)  size = Slice(s, minus, far)  length = Slice(s, low, minus)  outer = Slice(s, first, low)
    rows = Concat<axis = 0>(minus, length, size)  heads = Concat<axis = 0>(outer, size, LAST)
    f = Reshape(k, rows)  h = Transpose<perm = [0, 2, 1]>(f)  t = Reshape(h, heads)  a = Mul(q, half)  b = Mul(t, half)
    c = MatMul(a, b)  e = Add(c, m)  p = Softmax<axis = -1>(e)  n = IsNaN(p)  z = Where(n, zero, p)
    y = MatMul(z, v) }"""


@pytest.mark.parametrize(("last", "known"), [("length", True), ("minus", False)])
def test_sizes_that_the_graph_computes(last: str, known: bool) -> None:
    model = onnx.parser.parse_model(OPEN.replace("LAST", last))
    session = ep.Session(model, providers=["torch"])
    for batch, queries, keys in ((16, 4, 5), (17, 6, 1)):
        feeds = _feeds({"q": (batch, 3, queries, 8), "k": (batch, 3, keys, 8), "v": (batch, 3, keys, 6),
                        "m": (batch, 1, queries, keys)})  # fmt: skip
        feeds["m"][0, 0, 2] = -np.inf
        _agree(model, feeds)
    assert ("fused" in {row.op_type: row.how for row in session.plan().placements}["Softmax"]) == known
    assert (ep.to_torch(model).source().count("F.scaled_dot_product_attention(") == 1) == known


@pytest.mark.parametrize("operand", ["q", "k", "m"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize("end", ENDS)
def test_weights_that_are_nan_are_zero_where_the_guard_says_so(operand: str, number: float, end: str) -> None:
    feeds = _feeds({"q": (16, 3, 4, 8), "k": (16, 3, 5, 8), "v": (16, 3, 5, 6), "m": (16, 1, 4, 5)})
    feeds[operand][0, 0, 1, 2] = number
    _agree(built("transposed", "matrix", end), feeds)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("end", ENDS)
def test_a_query_that_is_not_finite_is_not_hidden_without_a_guard(number: float, end: str) -> None:
    shapes = {"q": (16, 3, 4, 8), "k": (16, 3, 5, 8), "v": (16, 3, 5, 6), "m": (16, 1, 4, 5)}
    feeds = {name: np.abs(array) for name, array in _feeds(shapes).items()}
    feeds["q"][0, 0, 1, 2] = number
    _agree(built("transposed", "none", end), feeds)


def _feeds(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def _agree(model: onnx.ModelProto, feeds: dict[str, np.ndarray], threads: int = 1) -> None:
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)[0]
    found = ep.Session(model, providers=["torch"], threads=threads).run(feeds)["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


BLOCKS = {"all heads at once": 1 << 18, "some heads": 40 * 50 * 2, "rows of a head": 50 * 17}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("scores", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.parametrize("end", ["plain", "guarded"])
def test_blocks_are_the_whole(monkeypatch: pytest.MonkeyPatch, end: str, scores: int, threads: int) -> None:
    counted: list[object] = []
    in_blocks = attention._in_blocks
    monkeypatch.setattr(attention, "_in_blocks", lambda *given: counted.append(given) or in_blocks(*given))
    monkeypatch.setattr(attention.vectors, "is_mkl_narrow", lambda: True)
    monkeypatch.setattr(attention.blas, "is_tuned", lambda: True)
    monkeypatch.setattr(attention, "_SCORES", scores)
    masked = end == "guarded"
    weights = "n = IsNaN(p)  z = Where(n, zero, p)" if masked else "z = Identity(p)"
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 18]>
        g (float[2, 40, 96] q, float[2, 5, 50, 32] k, float[2, 3, 50, 64] v, float[2, 1, 40, 50] m)
            => (float[2, 3, 40, 64] y)
        <float zero = {{0}}, float part = {{0.2}}, int64[4] split = {{2, 40, 3, 32}}, int64[1] a = {{0}},
         int64[1] b = {{3}}, int64[1] axis = {{1}}> {{
            r = Reshape(q, split)  h = Transpose<perm = [0, 2, 1, 3]>(r)  g = Slice(k, a, b, axis)
            t = Transpose<perm = [0, 1, 3, 2]>(g)  c = Mul(h, part)  s = MatMul(c, t)  x = Add(s, m)
            p = Softmax<axis = -1>({"x" if masked else "s"})  {weights}  y = MatMul(z, v) }}"""
    )
    feeds = _feeds({"q": (2, 40, 96), "k": (2, 5, 50, 32), "v": (2, 3, 50, 64), "m": (2, 1, 40, 50)})
    monkeypatch.setattr(attention, "_LEAST", 1)
    feeds["m"][1, 0, 3] = -np.inf  # a query that sees no key
    _agree(model, feeds, threads)
    assert counted
