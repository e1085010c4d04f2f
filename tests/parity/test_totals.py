"""Integers that tell sizes: for another size, others of the same kind."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.parity.totals import TOTALS, fitted, told_sizes

SAMPLES = {
    "lengths": [3, 0, 4],
    "offsets": [0, 2, 2, 7],
    "the longest": [7, 1, 7, 3],
    "indices": [[0, 6], [3, 3]],
    "grids": [[1, 2], [5, 1]],
}


@pytest.mark.parametrize("size", [2, 3, 5, 6, 8, 21, 100])
@pytest.mark.parametrize("kind", SAMPLES)
def test_other_integers_tell_another_size(kind, size):
    values, x = np.array(SAMPLES[kind], np.int32), np.zeros((7, 2))
    (feeds,) = [fitted(TOTALS[kind], {"x": x, "n": values}, {"x": np.zeros((size, 2)), "n": values})]
    assert feeds["n"].shape == values.shape
    assert feeds["n"].dtype == values.dtype
    assert feeds["n"].min() >= 0
    assert TOTALS[kind].read(feeds["n"]) == size


@pytest.mark.parametrize("kind", ["lengths", "offsets"])
@pytest.mark.parametrize("count", [2, 5, 6])
def test_more_or_fewer_integers_tell_the_same_size(kind, count):
    values, x = np.array(SAMPLES[kind]), np.zeros((7, 2))
    feeds = fitted(TOTALS[kind], {0: x, 1: values}, {0: x, 1: np.resize(values, count)})
    assert feeds[1].shape == (count,)
    assert TOTALS[kind].read(feeds[1]) == 7


def test_a_number_that_tells_a_size_follows_it():
    feeds = fitted(TOTALS["lengths"], {"x": np.zeros(5), "n": np.array(5)}, {"x": np.zeros(8), "n": np.array(5)})
    assert feeds["n"] == 8


@pytest.mark.parametrize(
    ("sample", "resized"),
    [
        ({"x": np.zeros(7), "n": np.array([3, 4])}, {"x": np.zeros(7), "n": np.array([4, 3])}),
        ({"x": np.zeros(7), "n": np.array([3.0, 4.0])}, {"x": np.zeros(8), "n": np.array([3.0, 4.0])}),
        ({"x": np.zeros(6), "n": np.array([1, 1])}, {"x": np.zeros(8), "n": np.array([1, 1])}),
        ({"n": np.array([1, 1, 1])}, {"n": np.array([1, 1, 1, 1])}),
        ({"x": ["a"], "n": np.array([3, 4])}, {"x": ["a"], "n": np.array([3, 4])}),
    ],
    ids=["told already", "no integers", "they tell nothing", "their own size", "a list"],
)
def test_what_tells_nothing_stays_as_it_is(sample, resized):
    assert list(told_sizes(sample, resized)) == []
