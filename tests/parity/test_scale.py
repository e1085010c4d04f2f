from __future__ import annotations

import numpy as np
import pytest

from entrepot.parity.compare import scales_of
from entrepot.parity.scale import typical_magnitude


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0, -4.0], np.sqrt(12.5)),
        ([], 0.0),
        ([0.0, 0.0], 0.0),
        ([np.nan, np.inf, 2.0], 2.0),
        ([-1e9, 1.0, -1.0, 1.0], 1.0),
        ([-3.4e38, -3.4e38, 1.0, 1.0], 1.0),
        ([-1e9, 0.0, 0.0, 2.0], np.sqrt(4 / 3)),
        ([5e-5], 5e-5),
    ],
)
def test_the_magnitude_is_that_of_the_values_that_matter(values, expected):
    assert typical_magnitude(np.array(values)) == pytest.approx(expected)


def test_extreme_numbers_neither_overflow_nor_vanish():
    assert typical_magnitude(np.array([1e300, 2e300, 3e300])) == pytest.approx(np.sqrt(14 / 3) * 1e300)
    assert typical_magnitude(np.array([1e-300, 2e-300, 3e-300])) == pytest.approx(np.sqrt(14 / 3) * 1e-300)


def test_an_array_of_many_blocks_is_read_whole():
    values = np.zeros(400_000)
    values[-2:] = 300.0, 400.0
    assert typical_magnitude(values) == pytest.approx(np.sqrt(250_000 / 400_000))


def test_the_columns_of_a_map_are_as_exact_as_the_largest_of_them():
    columns = {"a": np.float32([0.9]), "b": np.float32([1e-6])}
    scales = scales_of([{"of": columns, "apart": np.float32([1e-6])}])
    assert scales["of['b']"] == scales["of['a']"] == pytest.approx(0.9)
    assert scales["apart"] == pytest.approx(1e-6)
