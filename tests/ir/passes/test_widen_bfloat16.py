"""Operators of bfloat16 that onnxruntime lacks compute in float32; those that move elements stay as they are."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest

from entrepot.ir.passes.widen_bfloat16 import WidenBfloat16
from tests.ir.passes.forms import model, text_of

X, Y = "bfloat16[2, 3] x", "bfloat16[2, 3] y"
CASES = [
    ("y = Softmax(x)", "x.float = Cast(x); y.float = Softmax(x.float); y = Cast(y.float)"),
    (
        "a = Mul(x, x) t = Transpose(a) u = Transpose(t) y = Add(u, x)",
        "x.float = Cast(x); a = Mul(x.float, x.float); a.bfloat16 = Cast(a); t = Transpose(a.bfloat16); "
        "u = Transpose(t); u.float = Cast(u); y.float = Add(u.float, x.float); y = Cast(y.float)",
    ),
    (
        "f = Cast<to = 1>(x) g = Exp(f) y = Cast<to = 16>(g)",
        "f = Cast(x); g = Exp(f); y = Cast(g)",
    ),
    (
        "c = Constant<value = bool {1}>() y = If(c) <then_branch = t () => (bfloat16[2, 3] p) { p = Relu(x) }, "
        "else_branch = e () => (bfloat16[2, 3] q) { q = Identity(x) }>",
        "c = Constant(); y = If(c) {x.float = Cast(x); p.float = Relu(x.float); p = Cast(p.float)} {q = Identity(x)}",
    ),
    (
        "i = Constant<value_int = 1>() s = SequenceConstruct(x, x) y = SequenceAt(s, i)",
        "i = Constant(); x.float = Cast(x); s = SequenceConstruct(x.float, x.float); y.float = SequenceAt(s, i); "
        "y = Cast(y.float)",
    ),
]


@pytest.mark.parametrize(("body", "expected"), CASES)
def test_what_is_lacking_computes_in_single_precision_and_rounds(body: str, expected: str) -> None:
    source = model(body, X, Y)
    assert WidenBfloat16()(source.ir).modified == ("float" in expected)
    assert text_of(source.ir.graph) == expected
    proto = source.to_proto()
    onnx.checker.check_model(proto, full_check=True)
    assert onnxruntime.InferenceSession(proto.SerializeToString())
    assert not WidenBfloat16()(source.ir).modified


def test_results_are_those_of_single_precision_rounded_after_each_operator() -> None:
    source = model("n = Cast<to = 16>(x) a = Exp(n) b = Mul(a, n) y = Cast<to = 1>(b)")
    WidenBfloat16()(source.ir)
    x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
    narrow = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    grown = np.exp(narrow).astype(ml_dtypes.bfloat16).astype(np.float32)
    (found,) = onnxruntime.InferenceSession(source.to_proto().SerializeToString()).run(None, {"x": x})
    np.testing.assert_array_equal(found, (grown * narrow).astype(ml_dtypes.bfloat16).astype(np.float32))


def test_onnxruntime_still_lacks_what_is_widened() -> None:
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented):
        onnxruntime.InferenceSession(model("y = Add(x, x)", X, Y).to_proto().SerializeToString())
