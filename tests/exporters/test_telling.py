"""Axes that vary only with integers that tell their sizes, on models that say nothing of themselves."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.exporters.axes.probe import Prober
from tests.exporters.test_relations import Plain


def split(x, lengths):
    if lengths.sum() != len(x):
        raise ValueError("these lengths are not those of the parts")
    return np.stack([part.sum() for part in np.split(x, lengths.cumsum()[:-1])])


def between(x, offsets):
    return split(x, np.diff(offsets))


def masked(x, lengths):
    return x * (np.arange(lengths.max()) < lengths[:, None])


def nodes(x, edges):
    return x + np.bincount(edges[0], minlength=edges.max() + 1)


def levels(x, grids):
    height, width = grids.T
    return split(x, height * width)


def counted(x, count):
    return x * np.arange(count)


@pytest.mark.parametrize(
    ("function", "integers", "varying"),
    [
        (split, [3, 4], {(0, 0), (1, 0)}),
        (between, [0, 3, 7], {(0, 0), (1, 0)}),
        (masked, [2, 7], {(0, 0), (0, 1), (1, 0)}),
        (nodes, [[0, 6, 2], [3, 3, 1]], {(0, 0), (1, 0), (1, 1)}),
        (levels, [[1, 3], [2, 2]], {(0, 0), (1, 0)}),
        (counted, 7, {(0, 0)}),
    ],
)
def test_sizes_vary_with_the_integers_that_tell_them(function, integers, varying):
    x = np.arange(7.0) if function is not masked else np.ones((2, 7))
    sample = [x, np.array(integers)]
    model = Plain(function)
    prober = Prober(model, sample, model(sample))
    groups = prober.find_groups()
    assert {axis for group in groups for axis in group.axes} == varying
    for group in groups:
        for size in group.sizes[1:]:
            model(prober.resized(dict.fromkeys(group.axes, size)))  # and does not raise


def test_integers_stay_where_the_model_takes_any():
    model = Plain(lambda x, ids: x.sum() + ids)
    sample = [np.arange(7.0), np.array([3, 4])]
    prober = Prober(model, sample, model(sample))
    prober.find_groups()
    assert prober.resized({(0, 0): 9})[1].tolist() == [3, 4]


def test_a_position_in_the_sample_leaves_less_room_than_there_is():
    def written(cache, new, start):
        cache = cache.copy()
        if start + len(new) > len(cache):
            raise ValueError("that is beyond the cache")
        cache[start : start + len(new)] = new
        return cache

    sample = [np.zeros(8), np.ones(3), np.array(2)]
    model = Plain(written)
    groups = Prober(model, sample, model(sample)).find_groups()
    assert {axis for group in groups for axis in group.axes} == {(0, 0), (1, 0)}
