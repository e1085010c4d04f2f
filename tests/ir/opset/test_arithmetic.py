"""Max and Min of one shape, below opset 8."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, checked, op_types, parse, run
from tests.judges.early import evaluate

A = np.array([[1, np.inf, -np.inf]], np.float32)
B = np.array([[2], [-3]], np.float32)


@pytest.mark.parametrize("op_type", ["Max", "Min"])
@pytest.mark.parametrize("open_shapes", [False, True])
def test_extremes_that_broadcast_are_brought_to_one_shape(op_type: str, open_shapes: bool) -> None:
    shapes = "float[A,3] a, float[B,C] b" if open_shapes else "float[1,3] a, float[2,1] b"
    assert_same(parse(f"y = {op_type}(a, b)", 8, f"{shapes}) => (float[N,3] y"), 7, A, B)


@pytest.mark.parametrize(("kind", "clipped"), [("float", True), ("double", False)])
def test_a_number_is_a_bound_where_an_attribute_holds_it(kind: str, clipped: bool) -> None:
    model = parse("y = Max(x, h)", 8, f"{kind}[N] x) => ({kind}[N] y", stored=f"{kind} h = {{0.1}}")
    after = convert_opset(model, 7)
    checked(after)  # onnxruntime has neither a Clip nor a Max of doubles at opset 7
    assert ("Clip" in op_types(after)) is clipped


def test_what_is_broadcast_may_be_empty() -> None:
    model = parse("y = Mul(a, b)", 7, "float[2,0,4] a, float[1,0,1] b) => (float[2,0,4] y")
    proto = checked(convert_opset(model, 6))
    feeds = {"a": np.zeros((2, 0, 4), np.float32), "b": np.zeros((1, 0, 1), np.float32)}
    assert evaluate.run(proto, feeds)[0].shape == (2, 0, 4)


@pytest.mark.parametrize("power", [1, 2, 3, 7, 20])
def test_a_whole_power_of_large_integers_is_exact_below_opset_12(power: int) -> None:
    model = parse("y = Pow(x, p)", 13, "int64[N] x) => (int64[N] y", stored=f"int64 p = {{{power}}}")
    x = np.array([-7, 0, 3, 5 if power > 7 else 100_003 if power < 4 else 300], np.int64)
    np.testing.assert_array_equal(run(convert_opset(model, 9), x)[0], x**power)
