"""The judge of random results, on distributions whose difference is known."""

import numpy as np
import pytest

from entrepot.exporters.proof.chance import unlike

RNG = np.random.default_rng(0)
SHAPE = (200, 4, 12)


def dropped(p, shape=SHAPE):
    return np.where(RNG.random(shape) < p, 0, np.arange(1, 13) / (1 - p)).astype(np.float32)


def without_replacement(rows=200):
    return RNG.random((rows, 4, 6)).argsort(-1)[..., :3]


EQUAL = {
    "normal": lambda: RNG.normal(size=SHAPE),
    "heavy tails": lambda: RNG.standard_cauchy(SHAPE),
    "dropout": lambda: dropped(0.3),
    "whole numbers": lambda: RNG.integers(0, 5, SHAPE),
    "booleans": lambda: RNG.random(SHAPE) < 0.5,
    "one number for all": lambda: np.ones(SHAPE) * RNG.normal(size=(200, 1, 1)),
    "with infinities and NaN": lambda: RNG.choice([0.5, 1.0, np.inf, -np.inf, np.nan], SHAPE),
    "choices without replacement": without_replacement,
    "one element": lambda: RNG.normal(size=(200, 1)),
    "a scalar": lambda: RNG.normal(size=200),
}
UNEQUAL = {
    "a little more dropout": (lambda: dropped(0.1), lambda: dropped(0.16)),
    "not scaled": (lambda: dropped(0.3), lambda: dropped(0.3) * 0.7),
    "a wider spread": (lambda: RNG.normal(size=SHAPE), lambda: RNG.normal(size=SHAPE) * 1.2),
    "another mean of one element": (
        lambda: RNG.normal(size=SHAPE),
        lambda: RNG.normal(size=SHAPE) + (np.arange(12) == 3) * 1.5,
    ),
    "another shape of distribution": (
        lambda: RNG.normal(size=SHAPE),
        lambda: RNG.uniform(-np.sqrt(3), np.sqrt(3), SHAPE),
    ),
    "one number for all": (lambda: RNG.normal(size=SHAPE), lambda: np.ones(SHAPE) * RNG.normal(size=(200, 1, 1))),
    "with replacement": (without_replacement, lambda: RNG.integers(0, 6, (200, 4, 3))),
    "the other value": (lambda: RNG.random(SHAPE) < 0.3, lambda: RNG.random(SHAPE) < 0.7),
}


@pytest.mark.parametrize("draw", EQUAL.values(), ids=EQUAL.keys())
def test_draws_of_one_distribution_pass(draw):
    for _ in range(5):
        assert unlike(draw(), draw()) == ""
    assert unlike(draw()[:24], draw()) == ""


@pytest.mark.parametrize(("first", "second"), UNEQUAL.values(), ids=UNEQUAL.keys())
def test_draws_of_two_distributions_do_not(first, second):
    assert "its distribution differs" in unlike(first(), second())
    assert "its distribution differs" in unlike(second(), first())


def test_rounding_and_values_that_do_not_vary_mean_nothing():
    first, second = dropped(0.3), dropped(0.3) * np.float32(1 + 1e-6)
    first[:, 0], second[:, 0] = 3.0, 3.0 + 1e-6
    assert unlike(first, second) == ""


def normalised(total):
    """Rows with a mean of 0, as far as single precision and the order of a sum go."""
    rows = RNG.normal(size=(200, 384)).astype(np.float32)
    rows = rows - total(rows)[:, None] / np.float32(384)
    return rows / np.sqrt((rows * rows).mean(1, keepdims=True))


def one_by_one(rows):
    return np.cumsum(rows, axis=1, dtype=np.float32)[:, -1]


def test_means_of_what_is_normalised_are_rounding():
    pairwise = lambda rows: rows.sum(1, dtype=np.float32)  # noqa: E731
    assert unlike(normalised(pairwise), normalised(one_by_one)) == ""


def test_a_mean_that_is_off_by_more_than_rounding_shows():
    moved = normalised(one_by_one) + np.float32(12 * np.finfo(np.float32).eps)
    assert "its distribution differs" in unlike(normalised(one_by_one), moved)
