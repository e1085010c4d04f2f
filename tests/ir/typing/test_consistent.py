"""Nodes whose operands have types that may not stand together are named; those that may are not."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from entrepot.ir.typing.consistent import inconsistencies
from tests.ir.passes.forms import model

WRONG = {
    "two types": ("s = ReduceSum<keepdims = 0>(x) y = Where(c, x, s)", "double[2, 3] x, bool[2, 3] c", None),
    "a constant": ("b = Equal(x, one) y = Cast<to = 1>(b)", "double[2, 3] x", "takes double and int64 as one type"),
    "in a body": (
        "y = If(c) <then_branch = t () => (float[2, 3] p) { d = Add(z, one) p = Cast<to = 1>(d) }, "
        "else_branch = e () => (float[2, 3] q) { q = Cast<to = 1>(z) }>",
        "double[2, 3] z, bool c",
        "takes double and int64 as one type",
    ),
    "a loop that carries several types": (
        "n = Constant<value = int64 {2}>() g = Constant<value = bool {1}>() "
        "y, w = Loop(n, g, x, one) <body = b (int64 i, bool k, float[2, 3] p, int64 q) => "
        "(bool l, float[2, 3] r, int64 s) { l = Identity(k) r = Identity(p) s = Identity(q) }>",
        "float[2, 3] x",
        None,
    ),
    "a loop whose body returns another type": (
        "n = Constant<value = int64 {2}>() g = Constant<value = bool {1}>() "
        "w = Loop(n, g, x) <body = b (int64 i, bool k, float[2, 3] p) => "
        "(bool l, float[2, 3] r) { l = Identity(k) r = Identity(p) }> y = Cast<to = 1>(w)",
        "float[2, 3] x",
        "returns double, and its body float",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_operands_of_one_type_parameter_have_one_type(name: str) -> None:
    body, inputs, expected = WRONG[name]
    outputs = "double[2, 3] y" if name == "two types" else "float[2, 3] y"
    weights = "<int64 one = {1}>" if "one" in body else ""
    made = model(body, inputs, outputs, weights).ir
    if name == "a loop whose body returns another type":
        next(node for node in made.graph if node.op_type == "Loop").outputs[0].dtype = ir.DataType.DOUBLE
    found = list(inconsistencies(made))
    assert [expected in each for each in found] == [True] if expected else not found
