"""Numbers between 0 and 1: as many in each part of the range, and none that tells another."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.runtime.generation.draws import uniform

COUNT = 20_000
SERIES = {
    "rows": lambda: uniform(1, 0, np.arange(COUNT)),
    "turns": lambda: np.array([uniform(1, turn, np.zeros(1, np.int64))[0] for turn in range(COUNT)]),
    "seeds": lambda: np.array([uniform(seed, 0, np.zeros(1, np.int64))[0] for seed in range(COUNT)]),
    "large seeds": lambda: np.array([uniform(seed << 31, 0, np.zeros(1, np.int64))[0] for seed in range(COUNT)]),
}


@pytest.mark.parametrize("kind", SERIES)
def test_numbers_are_spread_evenly_whatever_counts(kind: str) -> None:
    numbers = SERIES[kind]()
    assert ((numbers > 0) & (numbers < 1)).all()
    assert len(np.unique(numbers)) > 0.999 * COUNT
    counts = np.bincount((numbers * 100).astype(int), minlength=100)
    assert ((counts - COUNT / 100) ** 2).sum() / (COUNT / 100) < 99 + 5 * np.sqrt(2 * 99)
    for lag in (1, 2, 7):
        assert abs(np.corrcoef(numbers[:-lag], numbers[lag:])[0, 1]) < 5 / np.sqrt(COUNT)


def test_the_same_seed_gives_the_same_numbers() -> None:
    rows = np.array([3, 1])
    assert np.array_equal(uniform(9, 4, rows), uniform(9, 4, np.arange(4))[rows])
