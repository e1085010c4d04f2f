"""Products of the rows of a tensor: see ``KeepBatches``."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from entrepot.ir.passes.keep_batches import KeepBatches
from tests.ir.passes.forms import check, model
from tests.ir.passes.test_moves import cleaned, ints

INPUTS, Y = "float[n, 2, 3] x, float[m, 3] r, float[n, 3, 2] u", "float[n, 2, 4] y"
WEIGHTS = "<float[3, 4] w = {1, -1, 2, -2, 0, 3, -3, 1, 2, 0, 1, -1}, float[4] b = {3, -1, 0.25, 1}>"
ROWS = ints(rows="-1, 3", back="-1, 2, 4") + "p = Reshape(x, rows) "
BACK = "s = Shape<start = 0, end = 2>(x) c = Concat<axis = 0>(s, four) y = Reshape(q, c)"

KEPT = {
    "a bias": (ROWS + "q = Gemm(p, w, b) y = Reshape(q, back)", "q_product = MatMul(x, w); y = Add(q_product, b)"),
    "no bias": (ROWS + "q = Gemm(p, w) y = Reshape(q, back)", "y = MatMul(x, w)"),
    "a computed shape": (
        ROWS + ints(four="4") + "q = Gemm(p, w, b) " + BACK,
        "q_product = MatMul(x, w); y = Add(q_product, b)",
    ),
    "a number": (
        ROWS + "f = Constant<value = float {2.0}>() q = Gemm(p, w, f) y = Reshape(q, back)",
        "q_product = MatMul(x, w); y = Add(q_product, f)",
    ),
}
AS_THEY_WERE = {
    "other axes": ROWS + "q = Gemm(p, w, b) i = Identity(q) y = Reshape(i, back)",
    "another last axis": ROWS + "p2 = Reshape(u, rows) q = Gemm(p2, w, b) y = Reshape(q, back)",
    "axes in another order": ROWS + ints(other="2, -1, 4") + "q = Gemm(p, w, b) y = Reshape(q, other)",
    "turned": ROWS + "t = Transpose(w) q = Gemm<transB = 1>(p, t, b) y = Reshape(q, back)",
    "weighed": ROWS + "q = Gemm<alpha = 0.5>(p, w, b) y = Reshape(q, back)",
    "a matrix added": ROWS + "k = ReduceSum(p) m = Mul(k, b) a = Add(m, b) h = Gemm(p, w) q = Gemm(p, w, h) "
    "y = Reshape(q, back)",
    "read twice": ROWS + "q = Gemm(p, w, b) z = Reshape(q, back) e = ReduceSum(q) y = Add(z, e)",
}
close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", KEPT)
def test_a_tensor_is_multiplied_as_it_is(name):
    body, expected = KEPT[name]
    check(cleaned(KeepBatches()), model(body, INPUTS, Y, WEIGHTS), expected, same=close)


@pytest.mark.parametrize("name", AS_THEY_WERE)
def test_other_products_of_rows_stay(name):
    check(KeepBatches(), model(AS_THEY_WERE[name], INPUTS, "float[] y", WEIGHTS), None, sizes=(2, 1))
