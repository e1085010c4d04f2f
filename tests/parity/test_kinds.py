"""What an input's floats have in common is kept in other values, and at other sizes."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.parity.feeds import resize, vary
from entrepot.parity.kinds import alike


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def _covariance(rng, size, *, batch=()):
    root = rng.standard_normal((*batch, size, size))
    return (root @ root.swapaxes(-1, -2) / size + np.eye(size)).astype(np.float32)


def _grown(sample, rng):
    """A square matrix with one row and column more."""
    return alike(resize(resize(sample, -1, sample.shape[-1] + 1, rng), -2, sample.shape[-2] + 1, rng), sample)


@pytest.mark.parametrize("batch", [(), (3,)])
def test_covariances_stay_positive_definite(rng, batch):
    sample = _covariance(rng, 4, batch=batch)
    for drawn in (vary(sample, rng), _grown(sample, rng)):
        assert np.array_equal(drawn, drawn.swapaxes(-1, -2))
        assert np.linalg.eigvalsh(drawn).min() > 0.9 * np.linalg.eigvalsh(sample).min()
        assert drawn.dtype == np.float32
    assert not np.array_equal(vary(sample, rng), sample)


def test_distances_keep_their_diagonal_of_zeros(rng):
    points = rng.standard_normal((5, 3)).astype(np.float32)
    sample = np.linalg.norm(points[:, None] - points, axis=-1)
    for drawn in (vary(sample, rng), _grown(sample, rng)):
        assert np.array_equal(drawn, drawn.T)
        assert not np.diagonal(drawn).any()
        assert drawn.any()


@pytest.mark.parametrize("half", [np.tril, np.triu])
def test_triangles_stay_triangles(rng, half):
    sample = half(rng.standard_normal((2, 4, 4))).astype(np.float32)
    for drawn in (vary(sample, rng), _grown(sample, rng)):
        assert np.array_equal(drawn, half(drawn))
        assert drawn.any()


def test_probabilities_add_up_to_one(rng):
    sample = rng.dirichlet(np.ones(5), 3).astype(np.float32)
    for drawn in (vary(sample, rng), alike(resize(sample, 1, 8, rng), sample)):
        assert (drawn >= 0).all()
        np.testing.assert_allclose(drawn.sum(-1), 1, rtol=1e-5)


def test_directions_have_length_one(rng):
    sample = rng.standard_normal((6, 4))
    sample /= np.linalg.norm(sample, axis=-1, keepdims=True)
    np.testing.assert_allclose(np.linalg.norm(vary(sample, rng), axis=-1), 1, rtol=1e-12)


@pytest.mark.parametrize("axis", [0, 1])
def test_times_ascend(rng, axis):
    sample = np.sort(rng.uniform(size=(6, 5)), axis=axis)
    sample = sample.astype(np.float32)
    steps = [np.diff(each, axis=axis) for each in (vary(sample, rng), resize(sample, axis, 11, rng))]
    assert all((each >= 0).all() for each in steps)
    assert not np.array_equal(vary(sample, rng), sample)


def test_longer_series_of_times_have_no_time_twice_and_the_same_range(rng):
    sample = np.array([0.0, 0.1, 0.4, 0.5, 1.0], np.float32)
    longer = resize(sample, 0, 12, rng)
    assert (np.diff(longer) > 0).all()
    assert longer[0] == sample[0]
    assert longer[-1] == sample[-1]


def test_edges_without_end_are_drawn_from_those_that_there_are(rng):
    sample = np.array([-np.inf, 0.0, 1.0, 2.0, np.inf], np.float32)
    assert np.isin(resize(sample, 0, 9, rng), sample).all()


def test_values_of_no_kind_are_left_as_they_are(rng):
    sample = rng.standard_normal((4, 4)).astype(np.float32)
    drawn = rng.standard_normal((5, 5)).astype(np.float32)
    assert alike(drawn, sample) is drawn


@pytest.mark.parametrize("number", [0.0, 1.0, 0.25])
def test_one_number_everywhere_tells_nothing(rng, number):
    sample = np.full((2, 4, 4), number, np.float32)
    drawn = vary(sample, rng)
    assert drawn[..., 0, 3].all()
    assert not np.array_equal(drawn, drawn.swapaxes(-1, -2))


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_values_that_are_no_numbers_are_left_as_they_are(rng, odd):
    sample = _covariance(rng, 3)
    drawn = sample.copy()
    drawn[0, 1] = odd
    assert alike(drawn, sample) is drawn
    assert alike(sample, drawn) is sample


@pytest.mark.parametrize("shape", [(0,), (0, 3), ()])
def test_what_holds_nothing_and_what_is_one_number_is_left_alone(shape):
    array = np.ones(shape, np.float32)
    assert alike(array, array) is array
