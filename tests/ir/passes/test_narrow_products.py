"""Products in a narrower type: what becomes narrow, what stays, and how far off results are."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import entrepot as ep
from entrepot.ir.passes.narrow_products import NarrowProducts
from entrepot.parity.feeds import generate
from tests.ir.passes.forms import model, run, text_of

WEIGHTS = {
    "w": "float[3, 3] w = {1,2,3,4,5,6,7,8,9}",
    "b": "float[3] b = {1,2,3}",
    "huge": "float[2, 2] huge = {1e9,1,1,1}",
    "k": "int64[1] k = {0}",
}
CASES = [
    ("y = MatMul(x, w)", "x.float16 = Cast(x); y.float16 = MatMul(x.float16, w); y = Cast(y.float16)"),
    (
        "a = MatMul(x, w) c = Add(a, b) y = Softmax(c)",
        "x.float16 = Cast(x); a = MatMul(x.float16, w); a.float = Cast(a); c = Add(a.float, b); y = Softmax(c)",
    ),
    (
        "v = Transpose(w) a = MatMul(x, v) c = MatMul(a, w) y = Relu(c)",
        "x.float16 = Cast(x); v = Transpose(w); a = MatMul(x.float16, v); c = MatMul(a, w); c.float = Cast(c); "
        "y = Relu(c.float)",
    ),
    (
        "a = MatMul(x, w) c = Unsqueeze(a, k) y = ReduceSum<keepdims = 0>(c, k)",
        "x.float16 = Cast(x); a = MatMul(x.float16, w); c = Unsqueeze(a, k); c.float = Cast(c); "
        "y = ReduceSum(c.float, k)",
    ),
    (
        "a = MatMul(x, w) s = ReduceMax<keepdims = 0>(w, k) c = Mul(a, s) y = MatMul(c, w)",
        "x.float16 = Cast(x); a = MatMul(x.float16, w.float16); a.float = Cast(a); s = ReduceMax(w, k); "
        "c = Mul(a.float, s); c.float16 = Cast(c); y.float16 = MatMul(c.float16, w.float16); y = Cast(y.float16)",
    ),
    ("a = MatMul(huge, x) y = Relu(a)", None),
    ("y = Softmax(x)", None),
]


@pytest.mark.parametrize(("body", "expected"), CASES)
def test_products_and_what_moves_along_become_narrow(body: str, expected: str | None) -> None:
    used = [text for name, text in WEIGHTS.items() if f"{name})" in body or f"({name}," in body]
    source = model(body, weights=f"<{', '.join(used)}>" if used else "")
    feeds, before = generate(source), source.to_proto()
    assert NarrowProducts(ir.DataType.FLOAT16)(source.ir).modified == (expected is not None)
    assert text_of(source.ir.graph) == (expected or text_of(ep.load(before).ir.graph))
    onnx.checker.check_model(source.to_proto(), full_check=True)
    for old, new in zip(run(before, feeds), run(source.to_proto(), feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-2, atol=1e-2)


def test_inputs_and_outputs_between_graphs_are_narrow_where_they_are_named() -> None:
    source = model("y = Concat<axis = 0>(past, x)", "float[2, 3] x, float[n, 3] past", "float[m, 3] y")
    NarrowProducts(ir.DataType.BFLOAT16, {"past", "y"})(source.ir)
    assert [spec.dtype for spec in (*source.inputs, *source.outputs)] == ["float32", "bfloat16", "bfloat16"]
    onnx.checker.check_model(source.to_proto(), full_check=True)
