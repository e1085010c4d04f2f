"""Element types that an older version does not list."""

from __future__ import annotations

from entrepot.ir.opset.convert import can_convert, convert_opset
from tests.ir.opset.evaluate import op_types, parse


def test_an_operator_that_makes_a_newer_type_makes_an_older_one_and_casts() -> None:
    model = parse("y = EyeLike<dtype = 16>(x)", 22, "float[3,4] x) => (bfloat16[3,4] y")
    after = convert_opset(model, 20)
    assert op_types(after) == ["EyeLike", "Cast"]
    assert after.ir.graph.node(0).attributes["dtype"].value == 1


def test_a_body_is_not_wrapped_in_casts() -> None:
    body = "y = If(c) <then_branch = a () => (p) { p = Identity(x) }, else_branch = b () => (q) { q = Identity(x) }>"
    model = parse(body, 13, "bool c, bfloat16[2] x) => (bfloat16[2] y")
    blockers = can_convert(model, 11)
    assert any("If of opset 11 does not take element type bfloat16" in str(blocker) for blocker in blockers)
