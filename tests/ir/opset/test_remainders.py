"""Remainders of floats before opset 10, which had no operator for them."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import parse, run

FLOATS = parse("y = Mod<fmod = 1>(a, b)", 13, "float[N] a, float[N] b) => (float[N] y")


@pytest.mark.parametrize("target", [7, 9])
def test_the_remainder_of_any_two_floats_is_exact(target: int) -> None:
    after = convert_opset(FLOATS, target)
    rng = np.random.default_rng(target)
    bits = rng.integers(0, 1 << 32, (2, 4000), np.uint32)
    a, b = bits.view(np.float32)
    with np.errstate(all="ignore"):
        near = (a[:2000], (a[:2000] * rng.choice([0.1, 1 / 3, 7e-5, 1e-3], 2000)).astype(np.float32))
    for x, y in ((a, b), near):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(run(after, x, y)[0], np.fmod(x, y))


def test_the_remainder_of_what_is_not_finite() -> None:
    values = np.array([np.inf, -np.inf, np.nan, 0, -0.0, 1e-45, -3.4028235e38, 3.4028235e38, 2.5], np.float32)
    x, y = (item.ravel() for item in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(convert_opset(FLOATS, 9), x, y)[0], np.fmod(x, y))


DOUBLES = parse("y = Mod<fmod = 1>(a, b)", 13, "double[N] a, double[M,1] b) => (double[M,N] y")


@pytest.mark.parametrize("target", [8, 9])
def test_the_remainder_of_any_two_doubles_is_exact(target: int) -> None:
    after = convert_opset(DOUBLES, target)
    bits = np.random.default_rng(target).integers(0, 1 << 63, (2, 60), np.uint64).view(np.float64)
    values = np.array([np.inf, -np.inf, np.nan, 0, -0.0, 5e-324, -1.7976931348623157e308, 2.5, -7.25])
    for x, y in (bits, (values, values), (bits[0], values)):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(run(after, x, y[:, None])[0], np.fmod(x, y[:, None]))


def test_the_remainder_of_doubles_is_refused_below_opset_8() -> None:
    with pytest.raises(ConversionError, match="remainder of doubles"):
        convert_opset(DOUBLES, 7)


def test_the_remainder_of_constants_by_zero_is_folded_without_a_warning() -> None:
    model = parse(
        "y = Mod<fmod = 1>(a, b)", 13, "float[1] c) => (float[1] y", stored="float[1] a = {1}, float[1] b = {0}"
    )
    assert np.isnan(run(convert_opset(model, 9), np.ones(1, np.float32))[0]).all()
