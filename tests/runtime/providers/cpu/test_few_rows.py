"""Products of few rows by large matrices."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.runtime.providers.cpu import products
from tests.op_cases.normal import normal as f32


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row by row whatever multiplies, in blocks that do not divide the matrix."""
    monkeypatch.setattr(products, "is_tuned", lambda: True)
    monkeypatch.setattr(products, "is_wide", lambda: True)
    monkeypatch.setattr(products, "_MATRIX", 1)
    monkeypatch.setattr(products, "_BLOCK", 1 << 12)


@pytest.mark.parametrize("columns", [1, 64, 300])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
def test_each_row_is_right(rows: int, columns: int) -> None:
    A, B = f32(rows, 40), f32(40, columns)
    y = products.dense(A, B)
    bound = np.abs(A).astype(np.float64) @ np.abs(B) * 42 * 2.0**-24
    assert y.shape == (rows, columns)
    assert (np.abs(y - A.astype(np.float64) @ B) <= bound).all()


def test_what_is_not_finite_stays_in_its_row() -> None:
    A, B = f32(3, 40), f32(40, 300)
    A[1, 7] = np.nan
    y = products.dense(A, B)
    assert np.isnan(y[1]).all()
    assert np.isfinite(y[[0, 2]]).all()


def test_an_end_sees_all_of_the_result() -> None:
    A, B = f32(2, 40), f32(40, 300)
    y = products.dense(A, B, lambda tile, part: np.add(tile, np.float32(1), out=tile))
    np.testing.assert_array_equal(y, products.dense(A, B) + np.float32(1))


@pytest.mark.parametrize(
    ("B", "most"),
    [
        (f32(40, 300), 4),
        (f32(300, 40), 3),
        (f32(40, 300).astype(np.float64), 0),
        (f32(300, 40).T, 0),
    ],
    ids=["wide", "high", "double", "in columns"],
)
def test_how_many_rows_are_few(B: np.ndarray, most: int) -> None:
    assert products.most_rows(B) == most
