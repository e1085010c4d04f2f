"""Operators whose own function body in the schema is wrong somewhere: spelled out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, op_types, parse, run


@pytest.mark.parametrize("target", [9, 13, 14])
def test_a_bernoulli_of_one_is_always_one(target: int) -> None:
    model = parse("y = Bernoulli(x)", 15)
    sure = np.array([[0, 1, 1, 0]], np.float32)
    (drawn,) = run(convert_opset(model, target), sure)
    np.testing.assert_array_equal(drawn, sure)


def test_a_bernoulli_is_of_the_type_asked_for_and_of_the_right_mean() -> None:
    model = parse("y = Bernoulli<dtype = 7, seed = 2.0>(x)", 15, "float[N] x) => (int64[N] y")
    (drawn,) = run(convert_opset(model, 13), np.full(4000, 0.2, np.float32))
    assert drawn.dtype == np.int64
    assert 0.15 < drawn.mean() < 0.25


@pytest.mark.parametrize("target", [8, 11])
def test_celu_of_a_scalar_is_a_scalar(target: int) -> None:
    assert_same(parse("y = Celu<alpha = 2.0>(x)", 12, "float x) => (float y"), target, np.array(-1.5, np.float32))


@pytest.mark.parametrize(
    ("kind", "mask"), [("float", np.zeros((3, 4), np.float32)), ("bool", np.array([[1, 0, 1, 1]] * 3, bool))]
)
@pytest.mark.parametrize("past", [False, True])
def test_keys_without_a_column_in_the_mask_are_hidden(kind: str, mask: np.ndarray, past: bool) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(1, 2, length, 8)).astype(np.float32) for length in (3, 5, 5))
    keys, values = (k, v) if not past else (k[:, :, 2:], v[:, :, 2:])
    length = keys.shape[2]
    signature = f"float[1,2,3,8] q, float[1,2,{length},8] k, float[1,2,{length},8] v, {kind}[3,4] m"
    signature += ", float[1,2,2,8] a, float[1,2,2,8] b" if past else ""
    body = "y, p, r = Attention(q, k, v, m, a, b)" if past else "y = Attention(q, k, v, m)"
    model = parse(body, 23, f"{signature}) => (float[1,2,3,8] y")
    feeds = (q, keys, values, mask, *((k[:, :, :2], v[:, :, :2]) if past else ()))
    (have,) = run(convert_opset(model, 18), *feeds)
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(8)
    hidden = np.concatenate([mask if kind == "bool" else np.ones((3, 4), bool), np.zeros((3, 1), bool)], axis=1)
    weights = np.where(hidden, np.exp(scores), 0)
    np.testing.assert_allclose(have, weights / weights.sum(-1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)


def test_heads_of_no_features_are_refused() -> None:
    signature = "float[1,2,3,8] q, float[1,2,5,8] k, float[1,2,5,0] v) => (float[1,2,3,0] y"
    with pytest.raises(ConversionError, match="no features"):
        convert_opset(parse("y = Attention(q, k, v)", 23, signature), 18)


def test_a_range_of_int16_is_counted_in_int32() -> None:
    model = parse("y = Range(a, b, c)", 11, "int16 a, int16 b, int16 c) => (int16[N] y")
    assert_same(model, 10, *(np.array(value, np.int16) for value in (3, -9, -4)))


@pytest.mark.parametrize("target", [12, 17, 19])
@pytest.mark.parametrize("sizes", [(2, 3, 4, 5), (1, 1, 2, 2)])
def test_a_branch_that_the_rank_decides_is_taken_out(target: int, sizes: tuple[int, ...]) -> None:
    model = parse("y = AffineGrid(x, s)", 20, "float[N,2,3] x, int64[4] s) => (float[N,H,W,2] y")
    theta = np.random.default_rng(0).normal(size=(sizes[0], 2, 3)).astype(np.float32)
    after = assert_same(model, target, theta, np.array(sizes))
    assert "If" not in op_types(after)
