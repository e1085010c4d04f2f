"""Reshape with ``allowzero=1`` and a shape computed at run time, below version 14."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, op_types, parse


def _x(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("target", [9, 10, 13])
@pytest.mark.parametrize("batch", [0, 1, 2])
def test_a_size_copied_from_the_same_axis_needs_no_allowzero(target: int, batch: int) -> None:
    body = """s = Shape<start = 0, end = 1>(x) c = Constant<value_ints = [12]>()
              d = Concat<axis = 0>(s, c) y = Reshape<allowzero = 1>(x, d)"""
    after = assert_same(parse(body, 18, "float[N,3,4] x) => (float[N,12] y"), target, _x(batch, 3, 4))
    assert "Where" not in op_types(after)


@pytest.mark.parametrize("batch", [0, 2])
def test_a_size_with_the_same_symbol_needs_no_allowzero(batch: int) -> None:
    body = """s = Shape(w) i = Constant<value_int = 0>() n = Gather(s, i) a = Constant<value_ints = [0]>()
              u = Unsqueeze(n, a) c = Constant<value_ints = [-1]>() d = Concat<axis = 0>(u, c)
              y = Reshape<allowzero = 1>(x, d)"""
    model = parse(body, 18, "float[N,3,4] x, float[N,5] w) => (float[N,M] y")
    if batch:  # with a size of 0, -1 has no meaning under allowzero
        after = assert_same(model, 13, _x(batch, 3, 4), _x(batch, 5))
    else:
        after = convert_opset(model, 13)
    assert "Where" not in op_types(after)


@pytest.mark.parametrize("target", [9, 13])
@pytest.mark.parametrize(
    ("batch", "shape"), [(2, [4, -1, 2]), (2, [24, 1, 1]), (0, [5, 0, 2]), (0, [0, 3, 4]), (0, [7, 7, 0])]
)
def test_any_shape_is_expressible(target: int, batch: int, shape: list[int]) -> None:
    model = parse("y = Reshape<allowzero = 1>(x, s)", 18, "float[N,3,4] x, int64[3] s) => (float[A,B,C] y")
    assert_same(model, target, _x(batch, 3, 4), np.array(shape))


def test_a_size_of_another_axis_is_not_taken_for_a_copy() -> None:
    body = """s = Shape<start = 1, end = 2>(x) c = Constant<value_ints = [-1]>()
              d = Concat<axis = 0>(s, c) y = Reshape<allowzero = 1>(x, d)"""
    after = convert_opset(parse(body, 18, "float[N,M] x) => (float[M,N] y"), 13)
    assert "Where" in op_types(after)


def test_strings_are_refused() -> None:
    model = parse("y = Reshape<allowzero = 1>(x, s)", 18, "string[N] x, int64[2] s) => (string[A,B] y")
    with pytest.raises(ConversionError, match="strings"):
        convert_opset(model, 13)


def test_no_new_axes_at_all_change_nothing() -> None:
    model = parse("y = Unsqueeze(x, none)", 13, "float[1,3] x) => (float[1,3] y", stored="int64[0] none = {}")
    assert_same(model, 9, np.ones((1, 3), np.float32))
