"""Axes that vary only in steps, found on models that say nothing of themselves: NumPy functions."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.exporters.arrays import NUMPY
from entrepot.exporters.axes.groups import name_groups
from entrepot.exporters.axes.limits import size_limits
from entrepot.exporters.axes.multiples import (
    sizes_around,
    smallest_step,
    smallest_step_back,
    squares_around,
)
from entrepot.exporters.axes.probe import Prober
from tests.exporters.test_relations import Plain


def found(function, *shapes):
    """The symbols of all axes that vary, the conditions on them, and how often the function was called."""
    model = Plain(function)
    arrays = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for shape in shapes]
    prober = Prober(model, arrays, model(arrays))
    groups = prober.find_groups()
    name_groups(groups, NUMPY, prober.base, "abc"[: len(arrays)])
    symbols = {axis: group.symbol for group in groups for axis in group.axes}
    shaped = [tuple(symbols.get((at, i), n) for i, n in enumerate(array.shape)) for at, array in enumerate(arrays)]
    return shaped, size_limits(prober, groups), model.calls


def only(step, rest=0, least=1):
    def function(x):
        if len(x) % step != rest or len(x) < least:
            raise ValueError("not that size")
        return x

    return function


@pytest.mark.parametrize("step", [2, 3, 4, 6, 7, 8, 14, 16, 32])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_smallest_step_is_found_in_few_runs(step, count):
    shapes, limits, calls = found(only(step), (step * count,))
    assert (shapes, limits) == ([("batch",)], [f"batch % {step} == 0"])
    assert calls <= 25


def pictures(down, across):
    def function(x):
        if x.shape[0] % down or x.shape[1] % across:
            raise ValueError("not that size")
        return x

    return function


@pytest.mark.parametrize(("down", "across"), [(32, 32), (16, 8), (8, 16), (4, 6)])
def test_the_step_of_one_size_is_tried_on_the_next(down, across):
    shapes, limits, calls = found(pictures(down, across), (96, 192))
    assert shapes == [("batch", "a_dim1")]
    assert limits == [f"batch % {down} == 0", f"a_dim1 % {across} == 0"]
    assert calls <= (22 if down == across else 31)


@pytest.mark.parametrize(("step", "size"), [(2, 7), (3, 7), (4, 5), (8, 17), (16, 33), (32, 65)])
def test_a_remainder_is_kept(step, size):
    assert found(only(step, size % step), (size,))[:2] == ([("batch",)], [f"batch % {step} == {size % step}"])


def test_a_least_size_is_a_whole_number_of_steps():
    assert found(only(4, least=11), (24,))[1] == ["batch >= 12", "batch % 4 == 0"]


@pytest.mark.parametrize(("step", "size"), [(8, 32), (4, 12), (3, 15), (7, 49)])
def test_an_axis_that_cannot_grow_varies_in_steps_below_its_size(step, size):
    def function(x):
        if len(x) > size:
            raise ValueError("the table ends")
        return only(step)(x)

    shapes, limits, calls = found(function, (size,))
    assert (shapes, limits) == ([("batch",)], [f"batch % {step} == 0"])
    assert calls <= 25


def test_an_axis_without_a_step_stays_fixed():
    def function(x):
        return x + np.ones(12)

    assert found(function, (12,))[:2] == ([(12,)], [])


def test_a_size_next_to_the_present_one_that_happens_to_be_taken_is_no_step():
    def function(x):
        return x[: len(x) // 4 * 4].reshape(-1, 4) + np.ones((7, 1))

    assert found(function, (28,))[0] == [(28,)]


def test_linked_axes_share_a_step_and_others_stay_free():
    def function(image, mask):
        batch, height, width = image.shape
        if height % 4 or width % 2:
            raise ValueError("whole patches only")
        return (image * mask).reshape(batch, height // 4, -1)

    shapes, limits, _ = found(function, (2, 16, 24), (2, 16, 24))
    assert shapes == [("batch", "a_dim1", "a_dim2")] * 2
    assert limits == ["a_dim1 % 4 == 0", "a_dim2 % 2 == 0"]


@pytest.mark.parametrize("rows", [1, 2])
def test_rows_that_are_read_as_longer_ones_are_no_step(rows):
    """Twice as many of the first are taken as rows that are twice as long, whatever the second has."""

    def function(memory, queries):
        keys = (memory + np.zeros(4)).reshape(len(queries), -1, 4)
        return np.einsum("bqc,bkc->bqk", queries + np.zeros(4), keys)

    shapes, limits, _ = found(function, (rows, 9, 4), (rows, 5, 4))
    assert shapes[0][0] == shapes[1][0] == "batch"
    assert limits == []


def test_what_follows_from_a_size_in_steps():
    def function(image, rows):
        if len(image) % 4:
            raise ValueError("whole patches only")
        return image.reshape(-1, 2).sum(1) + rows

    shapes, limits, _ = found(function, (16,), (8,))
    assert shapes == [("2*batch",), ("batch",)]
    assert limits == ["batch % 2 == 0"]


@pytest.mark.parametrize(("size", "step"), [(1, 1), (5, 1), (16, 4), (7, 3), (64, 32)])
def test_sizes_around_are_whole_steps_away_and_fresh(size, step):
    sizes = sizes_around(size, {0, 1, size + step}, step)
    assert all((other - size) % step == 0 and other > 1 and other not in (size, size + step) for other in sizes)
    assert sum(other > size for other in sizes) == 2


def test_the_smallest_step_of_a_size_that_never_grows_is_one():
    assert smallest_step(12, lambda size: size < 12) == 1


def test_the_smallest_step_back_of_a_size_that_never_shrinks_is_one():
    assert smallest_step_back(12, lambda size: size > 12) == 1


@pytest.mark.parametrize(
    ("size", "others"), [(16, [25, 36]), (17, [26, 37]), (18, [27, 38]), (19, []), (4, [9, 16]), (3, []), (1, [])]
)
def test_tokens_of_a_square_grid_become_those_of_others(size, others):
    assert squares_around(size) == others


def test_axes_that_are_refused_for_being_alone_are_not_tried_far_away():
    tried = []

    def function(x, y):
        tried.append(max(len(x), len(y)))
        return x + y.reshape(len(y), 2, 3)[:, 0]

    shaped, _, _ = found(function, (5, 3), (5, 6))
    assert shaped == [("batch", 3), ("batch", 6)]
    assert max(tried) < 96


def test_axes_that_vary_far_away_only_are_found_beside_others_of_their_size():
    def function(x, y):
        if len(x) % 32 != 5 or len(y) % 32 != 5:
            raise ValueError("not that size")
        return x + y[:1]

    assert found(function, (5,), (5,))[0] == [("batch",), ("b_dim0",)]
