"""Cumulative sums and products along axes of open size."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import parse, run

X = np.random.default_rng(0).standard_normal((3, 4, 2)).astype(np.float32)
FORMS = list(itertools.product([0, 1], [0, 1], [0, 1, 2]))


def cumulated(how: np.ufunc, x: np.ndarray, axis: int, *, exclusive: int, reverse: int) -> np.ndarray:
    x = np.flip(x, axis) if reverse else x
    result = how.accumulate(x, axis)
    if exclusive:
        first = np.full_like(np.take(x, [0], axis), how.identity)
        result = np.concatenate([first, np.take(result, range(x.shape[axis] - 1), axis)], axis)
    return np.flip(result, axis) if reverse else result


@pytest.mark.parametrize("target", [10, 9, 7])
@pytest.mark.parametrize(("exclusive", "reverse", "axis"), FORMS)
def test_an_open_axis_is_added_up(exclusive: int, reverse: int, axis: int, target: int) -> None:
    model = parse(
        f"y = CumSum<exclusive = {exclusive}, reverse = {reverse}>(x, a)",
        11,
        "float[A,B,C] x) => (float[A,B,C] y",
        stored=f"int64 a = {{{axis}}}",
    )
    truth = cumulated(np.add, X, axis, exclusive=exclusive, reverse=reverse)
    np.testing.assert_allclose(run(convert_opset(model, target), X)[0], truth, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("exclusive", "reverse", "axis"), FORMS)
def test_an_open_axis_is_multiplied_up(exclusive: int, reverse: int, axis: int) -> None:
    model = parse(
        f"y = CumProd<exclusive = {exclusive}, reverse = {reverse}>(x, a)",
        26,
        "float[A,B,C] x) => (float[A,B,C] y",
        stored=f"int64 a = {{{axis}}}",
    )
    truth = cumulated(np.multiply, X, axis, exclusive=exclusive, reverse=reverse)
    np.testing.assert_allclose(run(convert_opset(model, 13), X)[0], truth, rtol=1e-5, atol=1e-6)


def test_a_long_vector_is_multiplied_by_few_nodes() -> None:
    model = parse("y = CumProd(x, a)", 26, "float[500] x) => (float[500] y", stored="int64 a = {0}")
    after = convert_opset(model, 17)
    x = np.random.default_rng(0).uniform(0.9, 1.1, 500).astype(np.float32)
    np.testing.assert_allclose(run(after, x)[0], np.cumprod(x), rtol=1e-4)
    assert len(list(after.ir.graph)) < 20
