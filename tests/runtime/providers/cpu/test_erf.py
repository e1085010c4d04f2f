from __future__ import annotations

import math

import numpy as np

from entrepot.runtime.providers.cpu.erf import erf
from entrepot.runtime.providers.cpu.native.activation import gelu, sigmoid

GRID = np.concatenate([np.linspace(-7, 7, 20001), np.logspace(-30, 0, 300), -np.logspace(-30, 0, 300)])


def test_erf_of_float32_is_within_four_units_in_the_last_place() -> None:
    x = GRID.astype(np.float32)
    exact = np.array([math.erf(value) for value in x.astype(np.float64)])
    assert np.max(np.abs(erf(x) - exact) / np.spacing(np.abs(exact).astype(np.float32))) <= 4


def test_erf_of_float64_is_exact() -> None:
    np.testing.assert_array_equal(erf(GRID), [math.erf(value) for value in GRID])


def test_erf_of_narrow_floats_is_rounded_once() -> None:
    x = GRID.astype(np.float16)
    exact = np.array([math.erf(value) for value in x.astype(np.float64)])
    assert np.max(np.abs(erf(x).astype(np.float64) - exact) / np.spacing(np.abs(exact).astype(np.float16))) <= 0.51


def test_erf_reaches_one_and_stays_there() -> None:
    with np.errstate(all="ignore"):
        far = erf(np.array([5, 10, 1e10, 3e38, np.inf, -np.inf, np.nan], np.float32))
    np.testing.assert_array_equal(far, np.array([1, 1, 1, 1, 1, -1, np.nan], np.float32))


def test_gelu_is_as_close_as_its_formula_in_float32() -> None:
    x = np.linspace(-12, 12, 40001).astype(np.float32)
    exact = np.array([value * math.erfc(-value / math.sqrt(2)) / 2 for value in x.astype(np.float64)])
    with np.errstate(all="ignore"):
        error = np.abs(gelu(x) - exact)
    assert np.max(error / np.maximum(1, np.abs(x))) < 2e-7


def test_sigmoid_keeps_its_relative_accuracy_below_zero() -> None:
    x = np.linspace(-5, 5, 40001).astype(np.float32)
    exact = 1 / (1 + np.exp(-x.astype(np.float64)))
    assert np.max(np.abs(sigmoid(x) - exact) / exact) < 4e-7
