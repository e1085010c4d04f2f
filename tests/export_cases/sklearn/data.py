"""Small data of every kind that estimators take."""

from __future__ import annotations

from typing import Any

import numpy as np

ROWS, COLUMNS = 80, 5


def numbers(dtype: Any = np.float64) -> np.ndarray:
    """Three clouds."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=3, size=(3, COLUMNS))
    return (centres[np.arange(ROWS) % 3] + rng.normal(size=(ROWS, COLUMNS))).astype(dtype)


def positive(dtype: Any = np.float64) -> np.ndarray:
    """The same without signs."""
    return np.abs(numbers(dtype))


def counts() -> np.ndarray:
    """Whole numbers from 0 on."""
    return np.random.default_rng(1).integers(0, 5, (ROWS, COLUMNS))


def gaps(dtype: Any = np.float64) -> np.ndarray:
    """Numbers of which some are missing."""
    x = numbers(dtype)
    x[np.random.default_rng(2).random(x.shape) < 0.15] = np.nan
    return x


def words() -> np.ndarray:
    """Categories as text."""
    rng = np.random.default_rng(3)
    return np.stack([rng.choice(list(kinds), ROWS) for kinds in (("red", "green", "blue"), ("s", "m", "l", "xl"))], 1)


def sentences() -> np.ndarray:
    """Short texts."""
    rng = np.random.default_rng(4)
    stock = [
        "the",
        "cat",
        "sat",
        "on",
        "a",
        "mat",
        "and",
        "the",
        "dog,",
        "who",
        "was",
        "old,",
        "did",
        "not",
        "like",
        "it",
        "at",
        "all",
        "!",
        "good",
        "bad",
        "movie",
    ]
    return np.array([" ".join(rng.choice(stock, rng.integers(3, 9))).capitalize() + "." for _ in range(ROWS)], object)


def classes(count: int = 3) -> np.ndarray:
    """The cloud of each row, a few of them wrong."""
    y = np.arange(ROWS) % count
    y[np.random.default_rng(5).random(ROWS) < 0.1] = 0
    return y


def names(count: int = 2) -> np.ndarray:
    """Classes as text."""
    return np.array(["no", "yes", "perhaps"])[classes(count)]


def target() -> np.ndarray:
    """A number for each row, larger than 0."""
    x = numbers()
    return np.exp(0.1 * x[:, 0]) + np.abs(x[:, 1]) + 0.5


def targets() -> np.ndarray:
    """Two numbers for each row."""
    x = numbers()
    return np.stack([target(), x[:, 2] - x[:, 3]], 1)


def labels() -> np.ndarray:
    """Three labels that hold or do not."""
    return (numbers()[:, :3] > 0).astype(int)
