"""Sums of two products: see ``AddToProducts``."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from entrepot.ir.passes.add_to_products import AddToProducts
from tests.ir.passes.forms import check, model
from tests.ir.passes.test_moves import cleaned

INPUTS, Y = "float[n, 2] x, float[n, 3] h, float[4] z, bool k", "float[n, 4] y"
WEIGHTS = (
    "<float[4, 2] v = {1, 2, 3, 4, 5, 6, 7, 8}, float[3, 4] w = {1, -1, 2, -2, 0, 3, -3, 1, 2, 0, 1, -1}, "
    "float[4] a = {0.5, 1.5, -0.5, 2}, float[4] b = {3, -1, 0.25, 1}, float[1] c = {7}>"
)
FIRST = "p = Gemm<transB = 1, alpha = 2.0>(x, v{}) "

JOINED = {
    "two biases": (
        FIRST.format(", a") + "q = Gemm(h, w, b) y = Add(p, q)",
        "q_bias = Add(b, a); q = Gemm(h, w, q_bias); y = Gemm(x, v, q) transB=1",
    ),
    "a bias before": (
        FIRST.format(", a") + "q = Gemm(h, w) y = Add(p, q)",
        "p = Gemm(x, v, a) transB=1; y = Gemm(h, w, p)",
    ),
    "a bias behind": (
        FIRST.format("") + "q = Gemm(h, w, z) y = Add(q, p)",
        "q = Gemm(h, w, z); y = Gemm(x, v, q) transB=1",
    ),
    "in a branch": (
        "y = If(k) <then_branch = t () => (float[n, 4] s) {"
        + FIRST.format(", a")
        + "q = Gemm(h, w, b) s = Add(p, q) }, else_branch = e () => (float[n, 4] o) { o = Gemm(h, w) }>",
        "q_bias = Add(b, a); y = If(k) {o = Gemm(h, w)} {q = Gemm(h, w, q_bias); s = Gemm(x, v, q) transB=1}",
    ),
    "no bias": (
        FIRST.format("") + "q = Gemm(h, w) y = Add(p, q)",
        "q = Gemm(h, w); y = Gemm(x, v, q) transB=1",
    ),
}
APART = {
    "a bias that is computed": FIRST.format(", z") + "q = Gemm(h, w, b) y = Add(p, q)",
    "biases of two shapes": FIRST.format(", a") + "q = Gemm(h, w, c) y = Add(p, q)",
    "part of a bias": FIRST.format("") + "q = Gemm<beta = 0.5>(h, w, b) y = Add(p, q)",
    "read twice": FIRST.format("") + "q = Gemm(h, w, b) s = Add(p, q) y = Mul(s, q)",
    "one product": FIRST.format("") + "y = Add(p, p)",
    "one row": FIRST.format("") + "i = Constant<value_ints = [0]>() r = ReduceSum(h, i) q = Gemm(r, w) y = Add(p, q)",
}
close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", JOINED)
def test_a_product_is_added_to_another(name):
    body, expected = JOINED[name]
    check(cleaned(AddToProducts()), model(body, INPUTS, Y, WEIGHTS), expected, same=close)


@pytest.mark.parametrize("name", APART)
def test_other_sums_stay(name):
    check(AddToProducts(), model(APART[name], INPUTS, Y, WEIGHTS), None)
