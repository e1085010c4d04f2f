"""Integers that have to be in every row as often as in the sample."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.parity.marks import marked

PICTURES = [[1, 99, 99, 7, 5], [8, 99, 99, 2, 3]]
ENDS = [[4, 6, 99, 1], [5, 99, 7, 1]]


@pytest.mark.parametrize(
    ("sample", "count", "length", "expected"),
    [
        (PICTURES, 2, 7, [[1, 99, 99, 7, 5, 1, 7], [8, 99, 99, 2, 3, 8, 2]]),
        (PICTURES, 2, 4, [[1, 99, 99, 7], [8, 99, 99, 2]]),
        (PICTURES, 2, 2, [[99, 99], [99, 99]]),
        (PICTURES, 3, 5, [*PICTURES, PICTURES[0]]),
        (PICTURES[:1], 1, 6, [[1, 99, 99, 7, 5, 1]]),
        (ENDS, 2, 5, [[4, 6, 99, 1, 4], [5, 99, 7, 1, 5]]),
    ],
    ids=["longer", "shorter", "nothing else", "more rows", "one row", "once in each row"],
)
def test_marks_are_there_as_often(sample, count, length, expected):
    ids = np.array(sample, np.int32)
    found = marked({"x": np.zeros(3), "ids": ids}, {"x": np.zeros(4), "ids": np.full((count, length), 98, np.int32)})
    assert found["ids"].tolist() == expected
    assert found["ids"].dtype == np.int32
    assert found["x"].shape == (4,)


@pytest.mark.parametrize(
    ("sample", "shape"),
    [
        (PICTURES, (2, 1)),
        (PICTURES, (0, 5)),
        ([[1, 2], [3, 4]], (2, 3)),
        ([[1, 2, 3]], (1, 4)),
        ([[5, 5]], (1, 4)),
        ([1, 9, 9], (4,)),
        ([[0.0, 9.0, 9.0]], (1, 4)),
    ],
    ids=["no room", "empty", "nothing alike", "every value once", "nothing but marks", "one axis", "floats"],
)
def test_what_has_no_marks_stays_as_it_is(sample, shape):
    assert marked({"ids": np.array(sample)}, {"ids": np.zeros(shape, np.array(sample).dtype)}) is None
