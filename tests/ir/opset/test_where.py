"""Where below its birth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ir.opset.evaluate import assert_same, parse

MODEL = ("y = Where(c, a, b)", 9, "bool[N,1] c, float[M] a, float[N,M] b) => (float[N,M] y")


@pytest.mark.parametrize("target", [8, 7])
def test_floats_are_selected_whole_where_shapes_are_not_fixed(target: int) -> None:
    a, b = np.array([np.inf, 1, -0.0], np.float32), np.full((2, 3), np.nan, np.float32)
    after = assert_same(parse(*MODEL), target, np.array([[True], [False]]), a, b)
    assert after.opset == target


@pytest.mark.parametrize("kind", ["int64", "double", "int32", "uint8"])
def test_every_element_type_is_selected_where_shapes_are_not_fixed(kind: str) -> None:
    dtype: Any = {"int64": np.int64, "uint8": np.uint8, "double": np.float64, "int32": np.int32}[kind]
    model = parse("y = Where(c, a, b)", 9, f"bool[N] c, {kind}[N] a, {kind} b) => ({kind}[N] y")
    assert_same(model, 7, np.array([True, False, True]), np.array([1, 0, 1], dtype), np.array(0, dtype))
