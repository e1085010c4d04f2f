"""What was widened for onnxruntime is narrow again; what a user computes in float32 stays so."""

from __future__ import annotations

import onnx
import pytest

from entrepot.ir.passes.drop_unused import DropUnused
from entrepot.ir.passes.narrow_bfloat16 import NarrowBfloat16
from entrepot.ir.passes.widen_bfloat16 import WidenBfloat16
from tests.ir.passes.forms import model, text_of

X, Y = "bfloat16[2, 3] x", "bfloat16[2, 3] y"
WIDENED = [
    "y = Softmax(x)",
    "a = Mul(x, x) t = Transpose(a) u = Transpose(t) y = Add(u, x)",
    "a = Exp(x) s = Sigmoid(a) y = Mul(a, s)",
    "c = Constant<value = bool {1}>() y = If(c) <then_branch = t () => (bfloat16[2, 3] p) { p = Relu(x) }, "
    "else_branch = e () => (bfloat16[2, 3] q) { q = Identity(x) }>",
]
KEPT = [
    "w = Cast<to = 1>(x) a = Exp(w) b = Sqrt(a) y = Cast<to = 16>(b)",
    "w = Cast<to = 1>(x) two = Constant<value = float {2}>() b = Mul(w, two) y = Cast<to = 16>(b)",
    "w = Cast<to = 1>(x) b = Exp(w) y = Cast<to = 16>(b) z = Cast<to = 10>(b)",
]


@pytest.mark.parametrize("body", WIDENED)
def test_what_was_widened_is_what_it_was(body: str) -> None:
    source = model(body, X, Y)
    before = text_of(source.ir.graph)
    WidenBfloat16()(source.ir)
    assert text_of(source.ir.graph) != before
    assert NarrowBfloat16()(source.ir).modified
    DropUnused()(source.ir)
    assert text_of(source.ir.graph) == before
    onnx.checker.check_model(source.to_proto())


@pytest.mark.parametrize("body", KEPT)
def test_what_is_computed_in_float32_stays_so(body: str) -> None:
    source = model(body, X, Y)
    before = text_of(source.ir.graph)
    assert not NarrowBfloat16()(source.ir).modified
    assert text_of(source.ir.graph) == before
