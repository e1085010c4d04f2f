"""Pairs of items, as nested loops and ``itertools`` make them: how many there are is no size of the sample."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import entrepot as ep
from tests.exporters.torch.control_flow import x
from tests.exporters.torch.test_control_flow import results, tensors


def later_ones(x):
    """Each item with every later one, and where they are."""
    made, where = [], []
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            made.append(x[i] * x[j])
            where.append((i, j))
    return torch.stack(made), torch.tensor(where)


def every_one(x):
    """A table of several rows a turn, of numbers with and without fractions."""
    rows = []
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for scale in (0.5, 1.0):
                rows.append([(j + 0.5) / x.shape[1], i, scale])
    return torch.tensor(rows) + x.sum()


def other_ones(x):
    """Tables with conditions, one of them on values, as lists and as indices."""
    pairs = [(i, j) for i in range(x.shape[0]) for j in range(x.shape[0]) if i != j]
    even = [k for k in range(len(x)) if k % 2 == 0 and k < 4]
    large = [k for k, value in enumerate(x.mean(1).tolist()) if value > 0]
    rows = [row for row in x if row.sum() > 0]
    return (
        x[[i for i, _ in pairs]] - x[[j for _, j in pairs]],
        torch.tensor(even),
        x[large].sum(0),
        torch.tensor(len(rows)),
    )


def spans(x):
    """Pieces of some lengths, as far as there are any."""
    made, where = [], []
    for start in range(x.shape[0]):
        for width in range(1, 4):
            if start + width <= x.shape[0]:
                where.append((start, start + width))
                made.append(x[start : start + width].mean(0))
    return torch.stack(made), torch.tensor(where)


def gathered(x):
    """Lists that are put at the end of others."""
    pairs, made = [], []
    for i in range(x.shape[0]):
        pairs += [(i, j) for j in range(i)]
        made.extend([x[i] * j for j in range(i)])
    return torch.stack([x[i] @ x[j] for i, j in pairs]), torch.stack(made)


def chosen(x):
    """Combinations and permutations of items and of their places."""
    first, second = map(list, zip(*itertools.combinations(range(x.shape[0]), 2), strict=True))
    apart = [a - b for a, b in itertools.permutations(x, 2)]
    repeated = torch.tensor(list(itertools.combinations_with_replacement(range(x.shape[0]), 2)))
    threes = [x[[a, b, c]].prod(0) for a, b, c in itertools.combinations(range(x.shape[0]), 3)]
    return x[first] * x[second], torch.stack(apart), repeated, torch.stack(threes).sum(0)


def multiplied(x):
    """Products of ranges with each other and with a list."""
    places = torch.tensor([[i, j] for i, j in itertools.product(range(x.shape[0]), range(x.shape[1]))])
    boxes = []
    for i, j in itertools.product(range(x.shape[0]), range(x.shape[1])):
        boxes.append([(j + 0.5) / x.shape[1], (i + 0.5) / x.shape[0]])
    scales = torch.tensor(list(itertools.product(range(x.shape[0]), (0.5, 1.0, 2.0))))
    return places, torch.tensor(boxes), scales * x.mean()


def places_of_two(x):
    """A list that two loops give rows, and that holds one before."""
    rows = [(0.5, 0)]
    for scale, part in ((8, x), (16, x[1:])):
        for i in range(part.shape[0]):
            for j in range(part.shape[1]):
                rows.append(((j + 0.5) * scale, i))
    return torch.tensor(rows) * x.mean()


def adjacent(x):
    """Tables of NumPy's that are filled where conditions hold."""
    length = x.shape[0]
    beside, steps = np.zeros((length, length), dtype=np.float32), np.eye(length, dtype=np.float32)
    for i in range(length):
        for j in range(length):
            if abs(i - j) == 1:
                beside[i, j] = 1.0
    for i in range(1, length):
        if i % 2 == 0:
            steps[i, i - 1] += 0.5
    return torch.from_numpy(beside) @ x, torch.as_tensor(steps, dtype=x.dtype) @ x


def by_sign(x):
    """Lists in a dict and in a list that single arms give items."""
    found, ends = {"above": [], "below": []}, [[], []]
    for at, row in enumerate(x):
        if row.sum() > 0:
            found["above"].append(row)
            ends[0].append(at)
        else:
            found["below"].append(2 * row)
            ends[1].append((at, at + 1))
    both = torch.stack(found["above"] + found["below"])
    other = torch.stack([x[0], *found["below"]])
    return both, other, torch.tensor(len(found["above"])), torch.tensor(len(ends[0]) - len(ends[1]))


@pytest.mark.parametrize(
    "function",
    [later_ones, every_one, other_ones, spans, gathered, chosen, multiplied, places_of_two, adjacent, by_sign],
    ids=lambda each: each.__name__,
)
def test_pairs_of_items_follow_other_sizes(function):
    model = ep.export(function, x(5, 4))
    for size in (4, 3, 7):
        given = x(size, 4 if function is not multiplied else 6)
        for mine, theirs in zip(results(model, given), tensors(function(given)), strict=True):
            np.testing.assert_allclose(mine, theirs.numpy(), rtol=1e-5, atol=1e-6)


def greatest(x):
    """The greatest of some rows is a row."""
    rows = []
    for at, value in enumerate(x.sum(1).tolist()):
        rows.append((round(value > 0), at))
    best = max(rows)
    return torch.tensor(best) + 0 * x.sum()


def test_the_greatest_row_is_no_greatest_number():
    """``max`` of a list of tuples compares these; no graph is made that compares their numbers."""
    given = x(5, 4)
    try:
        model = ep.export(greatest, given)
    except ep.EntrepotError:
        return
    np.testing.assert_allclose(results(model, given)[0], greatest(given).numpy(), rtol=1e-5)
