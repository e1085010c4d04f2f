"""Products by constant matrices that are large enough to be packed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from entrepot.runtime.providers.torch import linear, private, vectors
from entrepot.runtime.providers.torch.dtypes import tensor_of
from entrepot.runtime.providers.torch.epilogues import Activation
from entrepot.runtime.providers.torch.linear import and_added, by_constant
from tests.op_cases.normal import normal as f32

INNER, OUTER = 192, 130
ROWS = 96


@pytest.fixture(params=["packed", "packed where MKL is slow", "plain"], autouse=True)
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With torch's private operators, and as if it had none."""
    monkeypatch.setattr(vectors, "is_mkl_narrow", lambda: "slow" in request.param)
    if request.param == "plain":
        monkeypatch.setattr(private, "linear", lambda: None)
        monkeypatch.setattr(private, "linear_of_rows", lambda: None)


def product(rows: int, *, biased: bool = True, activation: Any = None) -> tuple[Callable[..., Any], Any, Any]:
    weights, bias = f32(INNER, OUTER), f32(OUTER) if biased else None
    return by_constant(weights, bias, rows, activation), weights, 0.0 if bias is None else bias


def run(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    with torch.inference_mode():
        return function(*map(tensor_of, arrays)).numpy()


def assert_is_product(y: np.ndarray, x: np.ndarray, weights: np.ndarray, bias: Any) -> None:
    exact = x.astype(np.float64) @ weights.astype(np.float64) + bias
    bound = (np.abs(x).astype(np.float64) @ np.abs(weights) + np.abs(bias)) * (x.shape[-1] + 2) * 2.0**-24
    assert y.dtype == np.float32
    assert y.shape == exact.shape
    assert (np.abs(y - exact) <= bound).all()


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("rows", [0, ROWS], ids=["any rows", "known rows"])
@pytest.mark.parametrize("shape", [(ROWS,), (4, ROWS // 4), (1,), (2, 3, 50), (0,), (700,), (), (3, 0)], ids=str)
def test_any_number_of_rows_is_right(shape: tuple[int, ...], rows: int, biased: bool) -> None:
    function, weights, bias = product(rows, biased=biased)
    x = f32(*shape, INNER)
    assert_is_product(run(function, x), x, weights, bias)


@pytest.mark.parametrize("known", [False, True], ids=["any rows", "known rows"])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("inner", [INNER, 60], ids=["high", "wide"])
def test_few_rows_by_a_large_matrix(rows: int, inner: int, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "LARGE", inner * OUTER)
    weights, bias = f32(OUTER, inner).T, f32(OUTER)
    function = by_constant(weights, bias, rows if known else 0)
    for shape in ((rows,), (rows, 1)):
        x = f32(*shape, inner)
        assert_is_product(run(function, x), x, weights, bias)


@pytest.mark.parametrize("rows", [0, ROWS], ids=["any rows", "known rows"])
def test_rows_may_lie_apart(rows: int) -> None:
    function, weights, bias = product(rows)
    x = f32(INNER, ROWS).T
    assert_is_product(run(function, x), x, weights, bias)
    wide = f32(ROWS, 2 * INNER)[:, ::2]
    assert_is_product(run(function, wide), wide, weights, bias)


@pytest.mark.parametrize("rows", [0, ROWS], ids=["any rows", "known rows"])
def test_what_is_not_finite_stays_in_its_row(rows: int) -> None:
    function, weights, bias = product(rows, activation=Activation(torch.relu_))
    x = np.abs(f32(ROWS, INNER)) + 1
    x[3, 5], x[7, 0] = np.nan, np.inf
    y = run(function, x)
    assert np.isnan(y[3]).all()
    np.testing.assert_array_equal(y[7], np.where(weights[0] > 0, np.inf, 0).astype(np.float32))
    others = np.delete(np.arange(ROWS), [3, 7])
    plain = x[others].astype(np.float64) @ weights + bias
    np.testing.assert_allclose(y[others], np.maximum(plain, 0), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("residual", [(ROWS, OUTER), (1, OUTER), (2, ROWS, OUTER)], ids=str)
def test_what_is_added_may_have_another_shape_than_was_declared(residual: tuple[int, ...]) -> None:
    function, weights, bias = product(ROWS)
    x, more = f32(ROWS, INNER), f32(*residual)
    before = more.copy()
    y = run(lambda x, more: and_added(function)(x, None, None, more), x, more)
    assert y.shape == np.broadcast_shapes((ROWS, OUTER), residual)
    np.testing.assert_allclose(y, x.astype(np.float64) @ weights + bias + more, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(more, before)


def test_results_do_not_share_memory() -> None:
    function, *_ = product(ROWS)
    x = f32(ROWS, INNER)
    first = run(function, x)
    kept = first.copy()
    run(function, x * 2)
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize("rows", [0, ROWS], ids=["any rows", "known rows"])
@pytest.mark.parametrize("shape", [(ROWS, INNER + 1), (INNER, ROWS)], ids=str)
def test_an_input_that_does_not_fit_is_refused(shape: tuple[int, ...], rows: int) -> None:
    function, *_ = product(rows)
    with pytest.raises(RuntimeError, match="shape"):
        run(function, f32(*shape))
