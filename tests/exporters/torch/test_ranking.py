"""``sorted``, ``sort``, ``max`` and ``min`` by keys that data decide."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep


class Guess(NamedTuple):
    words: tuple
    score: float
    state: torch.Tensor


class Beam(nn.Module):
    """A search as Python writes it: guesses are extended, put in order, and cut off."""

    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.out = nn.Embedding(5, 6), nn.GRUCell(6, 6), nn.Linear(6, 5)

    def forward(self, x):
        guesses = [Guess((0,), 0.0, x)]
        for _ in range(3):
            longer = []
            for guess in guesses:
                state = self.cell(self.embed(torch.tensor([guess.words[-1]])), guess.state)
                scores, words = self.out(state).log_softmax(-1).topk(2)
                for score, word in zip(scores[0], words[0], strict=True):
                    longer.append(Guess((*guess.words, word.item()), guess.score + score.item(), state))
            guesses = sorted(longer, key=lambda guess: guess.score, reverse=True)[:2]
        return torch.tensor(guesses[0].words), guesses[1].state


class InPlace(nn.Module):
    """A list of its own is put in order; equal keys stay as they came."""

    def forward(self, x):
        pairs = [(x[at].sum().round(), x[at], at) for at in range(4)]
        pairs.sort(key=lambda pair: pair[0])
        return torch.stack([pair[1] for pair in pairs]), torch.tensor([pair[2] for pair in pairs])


class Rows(nn.Module):
    """Rows of which there are as many as the sample says."""

    def forward(self, x):
        pairs = [(row.sum().item(), row) for row in x]
        ordered = torch.stack([row for _, row in sorted(pairs, key=lambda pair: pair[0])])
        largest = max(pairs, key=lambda pair: pair[0])[1]
        least = min(x, key=lambda row: row.abs().max())
        return ordered, largest, least, torch.stack(sorted(x, key=lambda row: row[0], reverse=True)[:2])


class Sizes(nn.Module):
    """Where sizes decide, Python goes on by itself."""

    def forward(self, x):
        first, last = sorted([x, x[:, :2]], key=lambda part: part.shape[1], reverse=True)
        return first.sum(1) - max([last, last * 2], key=lambda part: part.dim()).sum(1)


class Hypotheses(nn.Module):
    """The same with tuples that are put in order by their scores, and the words of the best in a tensor."""

    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.score = nn.Embedding(5, 6), nn.GRUCell(6, 6), nn.Linear(6, 5)

    def forward(self, x):
        kept = [(torch.zeros(()), [0], x)]
        for _ in range(3):
            made = []
            for score, words, before in kept:
                state = self.cell(self.embed(torch.tensor([words[-1]])), before)
                values, places = self.score(state)[0].log_softmax(-1).topk(2)
                made += [(score + values[at], [*words, int(places[at])], state) for at in range(2)]
            made.sort(key=lambda guess: guess[0].item(), reverse=True)
            kept = made[:2]
        return torch.tensor(kept[0][1]), kept[0][0]


MODULES = {
    "hypotheses": (Hypotheses(), [torch.randn(1, 6), torch.randn(1, 6) * 3, torch.randn(1, 6) * -3]),
    "a beam": (Beam(), [torch.randn(1, 6), torch.randn(1, 6) * 3]),
    "in place": (InPlace(), [torch.randn(4, 3), torch.zeros(4, 3), torch.randn(6, 3).round()]),
    "rows": (Rows(), [torch.randn(4, 3), torch.randn(7, 3), torch.randn(2, 3)]),
    "sizes": (Sizes(), [torch.randn(2, 5), torch.randn(3, 4)]),
}


@pytest.mark.parametrize("name", MODULES)
def test_the_order_is_that_of_python(name):
    module, (sample, *others) = MODULES[name]
    module = module.eval()
    model = ep.export(module, sample, progress=False)
    assert isinstance(model.inputs[0].shape[0], str) == (name not in ("a beam", "hypotheses"))
    session = ep.Session(model)
    for x in (sample, *others):
        wanted = module(x)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for found, each in zip(session.run([x.numpy()]).values(), wanted, strict=True):
            np.testing.assert_allclose(found, each.detach().numpy(), rtol=1e-5, atol=1e-6)


class Unlike(nn.Module):
    """What is put in order has several shapes."""

    def forward(self, x):
        return max([x, x[:, :2]], key=lambda part: part.sum()) * 2


def test_items_of_several_shapes_are_refused():
    with pytest.raises(ep.ConversionError):
        ep.export(Unlike(), torch.randn(3, 4), progress=False)
