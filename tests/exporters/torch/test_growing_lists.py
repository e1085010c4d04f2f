"""Lists that grow in a loop whose length varies, and what is done with them in the loop and after it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

import entrepot as ep
from tests.exporters.torch.control_flow import Module, x
from tests.exporters.torch.test_control_flow import results, tensors


class BestPath(Module):
    """Back-pointers as lists of Python's numbers, followed from the end."""

    def forward(self, x):
        scores, pointers = x[0][None], []
        for row in x[1:]:
            best, values = [], []
            for tag in range(4):
                reached = scores + self.a.weight[tag]
                at = torch.max(reached, 1)[1].item()
                best.append(at)
                values.append(reached[0][at].view(1))
            scores = (torch.cat(values) + row).view(1, -1)
            pointers.append(best)
        at = torch.max(scores, 1)[1].item()
        path = [at]
        for best in reversed(pointers):
            at = best[at]
            path.append(at)
        first = path.pop()
        path.reverse()
        return scores[0][at], torch.tensor(path), torch.as_tensor(first)


class AllSoFar(Module):
    """Each step looks at all that were made before it."""

    def forward(self, x):
        h, made = x.new_zeros(x.shape[0], 4), []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            made.append(h)
            before = torch.stack(made, 1)
            weights = torch.softmax((before @ h[:, :, None]).squeeze(-1), -1)
            h = h + (weights[:, None] @ before).squeeze(1) + sum(made) / len(made) - made[t // 2]
        return h, torch.stack(made, 1)


class FromTheFront(Module):
    """What comes later is in front of what it is made of."""

    def forward(self, x):
        returns, made = [x[:, -1]], []
        for t in reversed(range(x.shape[1])):
            returns.insert(0, x[:, t] + 0.9 * returns[0])
            if made:
                made.insert(0, torch.tanh(made[0]) + self.a(x[:, t]))
            else:
                made.insert(0, x[:, t])
        return torch.stack(returns, 1), torch.stack(returns[:-1], 1) - x, torch.cat(made, 1)


class FromTheFrontOfBranches(Module):
    """Each arm of a branch puts another item in front."""

    def forward(self, x):
        h, made = x[:, 0] * 0, []
        for row in reversed(x.unbind(1)):
            if h.sum() > 0:
                h = h - row
                made.insert(0, h)
            else:
                h = h + row.abs()
                made.insert(0, -h)
        return torch.stack(made, 1)


class WithoutSome(Module):
    """Parts of lists are put together."""

    def forward(self, x):
        h, made = x[:, 0], []
        for row in x.unbind(1):
            h = torch.tanh(self.a(h) + row)
            made.append(h)
        without_last = torch.stack(x.unbind(1)[:-1])
        return torch.stack(made[1:], 1), torch.cat(made[:-1], 1), torch.stack(made[1::2]), without_last


class SideBySide(Module):
    """A list over two loops."""

    def forward(self, x):
        pairs = zip(x.unbind(1), (2 * x).unbind(1), strict=True)
        return torch.stack([each for pair in pairs for each in pair], 1)


class Expanded(Module):
    """Pieces of lengths that values decide, in a list: how many, how long, filled up by hand and by torch."""

    def forward(self, x):
        pieces, lengths = [], []
        for row in x:
            piece = row[: 1 + (row[:, 0] > 0).sum().item()]
            pieces.append(piece)
            lengths.append(piece.shape[0])
        longest = max([pieces[i].size(0) for i in range(len(pieces))])
        filled = torch.stack([nn.functional.pad(each, (0, 0, 0, longest - each.size(0))) for each in pieces])
        shortest = min(each.size(0) for each in pieces)
        return filled, pad_sequence(pieces), torch.LongTensor(lengths), torch.cat(pieces), filled[:, :shortest]


class FramesUntilFull(Module):
    """What stops it first is a value; how many there are is asked in a branch of that."""

    def forward(self, x):
        h, made = x, []
        while True:
            h = self.cell(x, h)
            made += [h]
            if torch.sigmoid(h).mean() > 0.9:
                break
            if len(made) == 5:
                break
        return torch.stack(made)


class Neighbours(Module):
    """Each step goes through all that were made before it, the last one first, once there are any."""

    def forward(self, x):
        h, made = x.new_zeros(x.shape[0], 4), []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            made.append(h)
            for at, before in enumerate(reversed(made)):
                h = h + torch.tanh(before) / (at + 1)
            if made:
                h = 2 * h
        return h


class BackByPlace(Module):
    """What a loop has noted, read again from its end by numbers that are computed."""

    def forward(self, x):
        best, rises = x[:, 0], []
        for t in range(1, x.shape[1]):
            rises.append(x[:, t] > best)
            best = torch.maximum(best, self.a(x[:, t]))
        found = [best]
        for t in range(x.shape[1] - 1, 0, -1):
            best = torch.where(rises[t - 1], 0.5 * best, best)
            found.append(best)
        return torch.stack(found[::-1], 1)


@pytest.mark.parametrize(
    ("kind", "sample", "others"),
    [
        (BestPath, x(5, 4), [x(9, 4), x(2, 4), x(3, 4)]),
        (AllSoFar, x(2, 5, 4), [x(3, 9, 4), x(1, 1, 4)]),
        (FromTheFront, x(2, 5, 4), [x(3, 9, 4), x(1, 2, 4)]),
        (FromTheFrontOfBranches, x(2, 5, 4), [x(3, 9, 4), x(1, 1, 4)]),
        (WithoutSome, x(2, 5, 4), [x(3, 9, 4), x(1, 4, 4)]),
        (SideBySide, x(2, 5, 4), [x(3, 9, 4), x(1, 1, 4)]),
        (FramesUntilFull, x(2, 4), [x(3, 4), 40 + x(1, 4)]),
        (Expanded, x(3, 5, 4), [x(2, 5, 4), -x(4, 3, 4), x(1, 2, 4)]),
        (BackByPlace, x(2, 5, 4), [x(3, 9, 4), x(1, 2, 4)]),
        (Neighbours, x(2, 5, 4), [x(3, 9, 4), x(1, 2, 4)]),
    ],
)
def test_lists_that_grow_are_followed_at_other_lengths(kind, sample, others):
    module = kind().eval()
    model = ep.export(module, sample)
    for given in (sample, *others):
        with torch.no_grad():
            expected = tensors(module(given.clone()))
        for mine, theirs in zip(results(model, given), expected, strict=True):
            np.testing.assert_allclose(mine, theirs.numpy(), rtol=2e-4, atol=2e-5)


def distances(x):
    """Tables of Python's numbers, one in a list of lists, the other as it is filled."""
    length, filled = x.shape[1], []
    for row in range(length):
        for column in range(length):
            filled.append(abs(row - column))
            filled.append(row + 1)
    table = torch.tensor([[abs(row - column) + 0.5 for column in range(length)] for row in range(length)])
    return x @ table, torch.tensor(filled).view(length, length, 2)


def products(x):
    """Lists of lists of tensors."""
    made = [[x[:, one] * x[:, other] + one for other in range(x.shape[1])] for one in range(x.shape[1])]
    rows = [torch.stack(row, -1) for row in made]
    return torch.stack(rows, -2), torch.cat(rows, 1)


def replaced(x):
    """Items at both ends of a list take the place of others."""
    made = []
    for row in x:
        made.append(row * 2)
    made[0] = made[0] + 1
    made[-1] = made[-1] * x.sum()
    return torch.stack(made)


def swapped(x):
    """The first and the last of the columns, in a list of them."""
    columns = list(x.unbind(1))
    columns[0], columns[-1] = columns[-1], columns[0]
    return torch.stack(columns, 1), x


def every_other(x):
    return torch.stack([column * 2 for column in itertools.islice(x.unbind(1), 0, None, 2)], 1)


@pytest.mark.parametrize("function", [distances, products, replaced, swapped, every_other])
@pytest.mark.parametrize("sizes", [(4, 1, 6)])
def test_lists_of_nested_loops_follow_other_lengths(function, sizes):
    model = ep.export(function, x(3, sizes[0]) if function is not replaced else x(sizes[0], 3))
    assert not any("fixed:" in note for note in model.notes)
    for size in sizes:
        given = x(3, size) if function is not replaced else x(size, 3)
        for mine, theirs in zip(results(model, given), tensors(function(given)), strict=True):
            np.testing.assert_allclose(mine, theirs.numpy(), rtol=1e-5, atol=1e-6)
