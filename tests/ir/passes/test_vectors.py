"""Sizes that are computed as vectors, as onnxruntime confirms."""

from __future__ import annotations

import pytest

from entrepot.ir.passes.keep_vectors import KeepVectors
from tests.ir.passes.forms import check, model
from tests.ir.passes.test_moves import cleaned, ints

INPUTS = "float[n, 3] x, float z"
HALF = (
    "s = Shape<start = 0, end = 1>(x) n = Squeeze(s) k = Constant<value_int = 2>() "
    + ints(v="-1", w="0", d="3")
    + "p = Add(n, k) h = Div(p, k) "
)
SAME = "s = Shape(x) end=1 start=0; p = Add(s, 2); h = Div(p, 2); "

FEWER = {
    "into a shape": (
        "r = Reshape(h, v) t = Concat<axis = 0>(r, d) y = Expand(z, t)",
        "float[a, 3] y",
        SAME + "t = Concat(h, [3]) axis=0; y = Expand(z, t)",
    ),
    "into two": (
        "r = Unsqueeze(h, w) q = Reshape(n, v) t = Concat<axis = 0>(r, q) y = Expand(z, t)",
        "float[a, b] y",
        SAME + "t = Concat(h, s) axis=0; y = Expand(z, t)",
    ),
    "into what broadcasts": (
        "c = Cast<to = 1>(h) y = Mul(x, c)",
        "float[n, 3] y",
        SAME + "c = Cast(h) to=1; y = Mul(x, c)",
    ),
    "a number besides": (
        "r = Reshape(h, v) o = Constant<value_int = 0>() i = Constant<value_int = 1>() a = Range(o, h, i) "
        "t = Concat<axis = 0>(r, d) u = Expand(z, t) e = Cast<to = 1>(a) f = ReduceSum(e) y = Add(u, f)",
        "float[a, 3] y",
        SAME + "h_scalar = Squeeze(h); a = Range(0, h_scalar, 1); t = Concat(h, [3]) axis=0; u = Expand(z, t); "
        "e = Cast(a) to=1; f = ReduceSum(e); y = Add(u, f)",
    ),
}
AS_MANY = {
    "a number alone": ("o = Constant<value_int = 0>() y = Range(o, h, k)", "int64[a] y"),
    "a graph output": ("y = Neg(h)", "int64 y"),
    "a larger vector": ("f = Constant<value_ints = [1, 1]>() r = Reshape(h, f) y = Neg(r)", "int64[1, 1] y"),
}


@pytest.mark.parametrize("name", FEWER)
def test_sizes_stay_vectors_where_that_takes_fewer_nodes(name):
    body, outputs, expected = FEWER[name]
    check(cleaned(KeepVectors()), model(HALF + body, INPUTS, outputs), expected, sizes=(4, 1))


@pytest.mark.parametrize("name", AS_MANY)
def test_sizes_stay_scalars_where_vectors_take_no_fewer_nodes(name):
    body, outputs = AS_MANY[name]
    check(KeepVectors(), model(HALF + body, INPUTS, outputs), None, sizes=(4, 1))
