"""Branches that make different shapes, which If takes from version 11 on."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, op_types, parse

BODY = """y = If(c) <
  then_branch = one () => (float[4] a) { t = Neg(x) a = Mul(t, x) },
  else_branch = two () => (float[8] b) { n = Concat<axis = 0>(x, x) b = Abs(n) }
>"""
SAME = """y = If(c) <
  then_branch = one () => (float[4] a) { a = Neg(x) },
  else_branch = two () => (float[4] b) { b = Abs(x) }
>"""
OPEN = """t = If(c) <
  then_branch = one () => (a) { s = Concat<axis = 0>(n, n) a = Reshape(e, s) },
  else_branch = two () => (float[4] b) { b = Abs(x) }
>
y = MatMul(w, t)"""
X = np.array([1, -2, 3, -4], np.float32)


@pytest.mark.parametrize("taken", [0, 1])
def test_a_branch_that_is_known_to_be_taken_stands_for_itself(taken: int) -> None:
    model = parse(BODY, 11, "float[4] x) => (float[M] y", stored=f"bool c = {{{taken}}}")
    after = assert_same(model, 10, X)
    assert "If" not in op_types(after)


def test_branches_of_different_shapes_are_refused() -> None:
    with pytest.raises(ConversionError, match="different output shapes"):
        convert_opset(parse(BODY, 11, "float[4] x, bool c) => (float[M] y"), 10)


def test_branches_of_the_same_shape_stay() -> None:
    after = assert_same(parse(SAME, 11, "float[4] x, bool c) => (float[4] y"), 10, X, np.array(True))
    assert op_types(after) == ["If"]


def test_the_shape_of_one_branch_is_not_taken_for_the_other() -> None:
    stored = "bool c = {1}, float[1,2] w = {1, 2}, float[4] e = {1, 2, 3, 4}"
    model = parse(OPEN, 11, "float[4] x, int64[K] n) => (float[1,M] y", stored=stored)
    after = assert_same(model, 10, X, np.array([2]))
    assert "If" not in op_types(after)
