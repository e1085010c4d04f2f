"""Axes that depend on one another, found on a model that says nothing of itself: a NumPy function."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.exporters.arrays import NUMPY
from entrepot.exporters.axes.groups import name_groups
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.axes.relations import Relation
from entrepot.exporters.exporter import Callee, Refusal
from entrepot.exporters.structure import flatten
from entrepot.ir.typing.formula import Formula


class Plain(Callee):
    """A function of arrays, and how often it was called."""

    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, arrays, /):
        self.calls += 1
        try:
            return flatten(self.function(*arrays))
        except ValueError as error:
            raise Refusal(error) from error


def found(function, *shapes):
    """The names of all axes that vary, and how often the function was called."""
    model = Plain(function)
    arrays = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for shape in shapes]
    prober = Prober(model, arrays, model(arrays))
    groups = prober.find_groups()
    names = [chr(ord("a") + index) for index in range(len(arrays))]
    name_groups(groups, NUMPY, prober.base, names)
    symbols = {axis: group.symbol for group in groups for axis in group.axes}
    return [
        tuple(symbols.get((index, axis), array.shape[axis]) for axis in range(array.ndim))
        for index, array in enumerate(arrays)
    ], model.calls


def cached(new, past, mask):
    return np.concatenate([past, new], 1) * mask


def bounded(new, past, mask):
    """A cache of 5 by a weight, as prompt tuning has it."""
    return np.concatenate([past * np.ones((1, 5)), new], 1) * mask


def pooled(x):
    return x[:, : x.shape[1] // 4 * 4].reshape(x.shape[0], -1, 4).mean(2)


def strided(x):
    return np.stack([x[start : start + 3].sum() for start in range(0, len(x) - 2, 2)])


SIDES = [("batch",), ("b_dim0",)]
NEW, PAST, BOTH = ("batch", "a_dim1"), ("batch", "b_dim1"), ("batch", "a_dim1 + b_dim1")
RELATED = {
    "past and new": (cached, [(2, 3), (2, 5), (2, 8)], [NEW, PAST, BOTH]),
    "one new": (cached, [(1, 1), (1, 5), (1, 6)], [NEW, PAST, BOTH]),
    "past by a weight": (bounded, [(2, 3), (2, 5), (2, 8)], [NEW, ("batch", 5), ("batch", "a_dim1 + 5")]),
    "twice": (lambda x, y: np.repeat(x, 2) + y, [(5,), (10,)], [("batch",), ("2*batch",)]),
    "twice and one": (lambda x, y: np.append(np.repeat(x, 2), 0) + y, [(5,), (11,)], [("batch",), ("2*batch + 1",)]),
    "product": (lambda x, y, z: np.outer(x, y).ravel() + z, [(5,), (7,), (35,)], [*SIDES, ("b_dim0*batch",)]),
    "quarter": (lambda x, y: pooled(x) + y, [(2, 22), (2, 5)], [("batch", "a_dim1"), ("batch", "a_dim1//4")]),
    "stride": (lambda x, y: strided(x) + y, [(22,), (10,)], [("batch",), ("(batch + 1)//2 - 1",)]),
    "difference": (lambda x, y: np.diff(x) + y, [(9,), (8,)], [("batch + 1",), ("batch",)]),
}


@pytest.mark.parametrize("case", RELATED)
def test_an_axis_that_depends_on_others_is_found_by_changing_sizes_in_step(case):
    function, shapes, expected = RELATED[case]
    assert found(function, *shapes)[0] == expected


@pytest.mark.parametrize(
    ("function", "shapes", "names"),
    [
        (
            lambda x, y: x.reshape(len(y), 3, -1) + y[:, :, None],
            [(6, 4), (2, 3)],
            [("3*batch", "a_dim1"), ("batch", 3)],
        ),
        (
            lambda x, y: x.reshape(len(x), len(y), -1) * y[:, None],
            [(2, 12), (3,)],
            [("batch", "4*b_dim0"), ("b_dim0",)],
        ),
    ],
    ids=["rows for each of a batch", "a width split by another input"],
)
def test_multiples_are_found_where_the_source_says_nothing_of_them(function, shapes, names):
    class Silent(Plain):
        def relations(self, arrays, equal):
            return []

    model = Silent(function)
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    prober = Prober(model, arrays, model(arrays))
    groups = prober.find_groups()
    name_groups(groups, NUMPY, prober.base, "ab")
    symbols = {axis: group.symbol for group in groups for axis in group.axes}
    found = [tuple(symbols.get((at, i), n) for i, n in enumerate(shape)) for at, shape in enumerate(shapes)]
    assert found == names
    assert model.calls < 120


class Guessing(Plain):
    """A model that says one thing too much of itself: that a width follows from how many rows of how many numbers."""

    largest = 0

    def __call__(self, arrays, /):
        self.largest = max(self.largest, *(array.size for array in arrays))
        return super().__call__(arrays)

    def relations(self, arrays, equal):
        return [Relation(frozenset({(1, 2)}), Formula.of("4096*axis_0_0*axis_0_1*axis_0_1*axis_0_1"))]


def test_a_guess_that_comes_to_nothing_leaves_what_was_found_without_it():
    def widened(ids, past, weight):
        return np.concatenate([past, np.repeat(ids[:, :, None], 4096, 2) * weight.reshape(3, 1).sum()], 1)

    model = Guessing(widened)
    arrays = [np.ones(shape, np.float32) for shape in [(1, 1), (1, 5, 4096), (3,)]]
    groups = Prober(model, arrays, model(arrays)).find_groups()
    assert [sorted(group.axes) for group in groups] == [[(0, 0), (1, 0)], [(0, 1)], [(1, 1)]]
    assert model.largest < 1 << 25
