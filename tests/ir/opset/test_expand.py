"""Expand below its birth, by shapes known and computed."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ir.opset.evaluate import assert_same, parse

SHAPES = [
    ((3, 1), (2, 3, 4)),
    ((3, 4), (3, 1)),
    ((3, 1), (0,)),
    ((1,), (2, 2)),
    ((2, 3, 1), (1, 4)),
    ((), (2, 3)),
    ((0, 1), (1, 5)),
]


@pytest.mark.parametrize(("own", "shape"), SHAPES)
def test_a_computed_shape_repeats_axes_of_one(own: tuple[int, ...], shape: tuple[int, ...]) -> None:
    dims = f"[{','.join('ABCD'[: len(own)])}]" if own else ""
    result = ",".join("PQRS"[: max(len(own), len(shape))])
    model = parse("y = Expand(x, s)", 8, f"float{dims} x, int64[{len(shape)}] s) => (float[{result}] y")
    x = np.random.default_rng(0).standard_normal(own).astype(np.float32)
    assert_same(model, 7, x, np.array(shape, np.int64))


@pytest.mark.parametrize("kind", ["int64", "bool", "double"])
def test_any_element_type_is_expanded(kind: str) -> None:
    dtype = {"int64": np.int64, "bool": np.bool_, "double": np.float64}[kind]
    model = parse("y = Expand(x, s)", 8, f"{kind}[A] x, int64[2] s) => ({kind}[P,Q] y")
    assert_same(model, 7, np.array([1, 0, 3]).astype(dtype), np.array([2, 1]))
