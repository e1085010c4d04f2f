from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from entrepot.runtime.providers.cpu import blocks

DTYPES = [np.bool_, np.int8, np.uint16, np.int32, np.int64, np.float16, np.float32, np.float64, ml_dtypes.bfloat16]
LARGE = blocks.SMALL + 7


def values(dtype: Any, shape: tuple[int, ...], seed: int) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * 9).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("condition", "x", "y"),
    [
        ((LARGE,), (LARGE,), (LARGE,)),
        ((LARGE,), (), ()),
        ((LARGE,), (LARGE,), ()),
        ((LARGE,), (1,), (LARGE,)),
        ((3, 1, LARGE), (4, 1), (LARGE,)),
        ((LARGE, 1), (LARGE, 3), (3,)),
    ],
)
def test_select_is_where(dtype: Any, condition: Any, x: Any, y: Any) -> None:
    chosen, first, second = values(np.bool_, condition, 0), values(dtype, x, 1), values(dtype, y, 2)
    got = blocks.select(chosen, first, second)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, np.where(chosen, first, second))


def test_select_keeps_nan_and_the_sign_of_zero() -> None:
    condition = np.arange(LARGE) % 2 == 0
    got = blocks.select(condition, np.array(np.nan, np.float32), np.array(-0.0, np.float32))
    assert np.isnan(got[::2]).all()
    assert np.signbit(got[1::2]).all()


def test_select_takes_arrays_that_are_not_contiguous() -> None:
    x, y = values(np.float32, (64, 128), 1).T, values(np.float32, (256, 64), 2)[::2]
    condition = values(np.bool_, (64, 128), 3).T
    np.testing.assert_array_equal(blocks.select(condition, x, y), np.where(condition, x, y))


@pytest.mark.parametrize("size", [5, LARGE])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
def test_bounds_are_those_of_maximum_and_minimum(dtype: Any, size: int) -> None:
    x, low, high = values(dtype, (size,), 1), np.array(-2, dtype), np.array(3, dtype)
    if np.issubdtype(dtype, np.floating):
        x[:3] = np.nan, np.inf, -np.inf
    np.testing.assert_array_equal(blocks.maximum(x, low), np.maximum(x, low))
    np.testing.assert_array_equal(blocks.minimum(x, high), np.minimum(x, high))
    np.testing.assert_array_equal(blocks.clamp(x, low, high), np.minimum(np.maximum(x, low), high))
    np.testing.assert_array_equal(blocks.clamp(x, high, low), np.full(size, low) if dtype == np.int32 else _crossed(x))


def _crossed(x: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(x), x, np.array(-2, x.dtype))


@given(
    hnp.arrays(np.float32, hnp.array_shapes(max_dims=3, max_side=70), elements=st.floats(-9, 9, width=32)), st.data()
)
def test_blockwise_is_the_formula_on_the_whole(x: np.ndarray, data: st.DataObject) -> None:
    x = x.transpose(data.draw(st.permutations(range(x.ndim))))

    def double(block: np.ndarray, out: np.ndarray, buffer: np.ndarray) -> None:
        np.copyto(buffer, block)
        np.add(block, buffer, out)

    got = blocks.blockwise(x, double)
    np.testing.assert_array_equal(got, x + x)


@pytest.mark.parametrize("size", [blocks.BLOCK, blocks.BLOCK + 1, 3 * blocks.BLOCK - 5])
def test_blockwise_reaches_every_block(size: int) -> None:
    x = np.arange(size, dtype=np.float32)
    np.testing.assert_array_equal(blocks.blockwise(x, lambda block, out, buffer: np.negative(block, out)), -x)
