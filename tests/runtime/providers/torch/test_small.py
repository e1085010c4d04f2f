"""Parts that NumPy's kernels run for the torch provider, because calling torch would take longer."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch

import entrepot as ep
from tests.op_cases.normal import normal as f32

HEAD = '<ir_version: 10, opset_import: ["": 22]>\n'

SMALL = {
    "a chain": "g (float[1, 16] x) => (float[1, 16] y) { a = Mul(x, x)  y = Add(a, x) }",
    "a product": "g (float[1, 16] x) => (float[16, 16] y) { t = Transpose(x)  y = MatMul(t, x) }",
    "a branch": """g (float[4] x) => (float[4] y) { s = ReduceMax<keepdims = 0>(x)  y = Relu(x) }""",
    "a loop": """g (float[1, 16] x) => (float[1, 16] y) {
        n = Constant<value = int64 {3}>()  go = Constant<value = bool {1}>()
        y = Loop(n, go, x) <body = b (int64 i, bool c, float[1, 16] h) => (bool d, float[1, 16] k) {
            d = Identity(c)  k = Add(h, x) }>
    }""",
}

LARGE = {
    "many elements": "g (float[64, 64] x) => (float[64, 64] y) { y = Relu(x) }",
    "elements without number": "g (float[N, 16] x) => (float[N, 16] y) { y = Relu(x) }",
    "a convolution": """g (float[1, 1, 8, 8] x) => (float[1, 2, 8, 8] y) <float[2, 1, 1, 1] w = {1.0, 2.0}>
        { y = Conv(x, w) }""",
    "another type": "g (float16[4] x) => (float16[4] y) { y = Relu(x) }",
}

SHAPES = {
    "a branch": (4,),
    "many elements": (64, 64),
    "elements without number": (5, 16),
    "a convolution": (1, 1, 8, 8),
}


def session(text: str) -> ep.Session:
    return ep.Session(ep.load(onnx.parser.parse_model(HEAD + text)), providers=["torch"])


def is_numpys(it: ep.Session) -> bool:
    return all(row.how.endswith(", NumPy's") for row in it.plan().placements)


def given(name: str) -> np.ndarray:
    return f32(*SHAPES.get(name, (4,) if name == "another type" else (1, 16)))


@pytest.mark.parametrize("name", ["a chain", "a product", "a loop"])
def test_a_small_part_is_numpys(name: str) -> None:
    it = session(SMALL[name])
    assert is_numpys(it)
    assert it.providers == ("torch",)
    assert {row.provider for row in it.plan().placements} == {"torch"}
    assert not it.plan().copies


@pytest.mark.parametrize("name", LARGE)
def test_what_may_be_large_is_torchs(name: str) -> None:
    assert not is_numpys(session(LARGE[name]))


@pytest.mark.parametrize("name", [*SMALL, *LARGE])
def test_both_compute_the_same(name: str) -> None:
    text = {**SMALL, **LARGE}[name]
    x = given(name).astype(np.float16 if name == "another type" else np.float32)
    wanted = ep.Session(ep.load(onnx.parser.parse_model(HEAD + text)), providers=["reference"]).run({"x": x})["y"]
    np.testing.assert_allclose(session(text).run({"x": x})["y"], wanted, rtol=1e-6)


@pytest.mark.parametrize("name", ["a chain", "many elements"])
def test_results_are_where_the_feeds_are(name: str) -> None:
    x = given(name)
    it = session({**SMALL, **LARGE}[name])
    near, there = it.run({"x": x})["y"], it.run({"x": torch.from_numpy(x)})["y"]
    assert type(near) is np.ndarray
    assert isinstance(there, torch.Tensor)
    np.testing.assert_array_equal(near, there.numpy())


def test_a_feed_that_comes_out_again_is_a_copy() -> None:
    it = session("g (float[1, 16] x) => (float[1, 16] y, float[1, 16] z) { y = Identity(x)  z = Neg(x) }")
    x = f32(1, 16)
    made = it.run({"x": x})
    made["y"][:] = 7
    assert not (x == 7).any()


def test_parts_in_the_order_of_other_inputs_take_the_right_ones() -> None:
    text = "g (float[2] a, float[2] b, float[2] c) => (float[2] y, float[2] z)"
    text += "{ z = Sub(c, a)  t = Mul(b, b)  y = Sub(t, c) }"
    a, b, c = (np.array(each, np.float32) for each in ([1, 2], [3, 4], [5, 6]))
    made = session(text).run({"a": a, "b": b, "c": c})
    assert made["z"].tolist() == [4, 4]
    assert made["y"].tolist() == [4, 10]
