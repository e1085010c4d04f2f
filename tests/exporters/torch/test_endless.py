"""Loops over iterables that need not end, which the code of the loop leaves."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.rewriting.endless import NotFollowedError, within


class LayersByName(nn.Module):
    """As many layers as there are, which nothing but their names tells."""

    def __init__(self):
        super().__init__()
        for number in range(3):
            setattr(self, f"layer{number}", nn.Linear(4, 4))

    def forward(self, x):
        if not torch.isfinite(x).all():
            raise ValueError("not finite")
        for number in itertools.count():
            if not hasattr(self, f"layer{number}"):
                break
            x = torch.tanh(getattr(self, f"layer{number}")(x))
        return x


class UntilItRests(nn.Linear):
    """Left by a condition on values, after as many turns as these take."""

    def forward(self, x):
        for turn in itertools.count(-1):
            before, x, turns = x, torch.tanh(super().forward(x)) * 0.5, turn
            if (x - before).abs().max() < 0.1:
                break
        return x, turns


class Numbered(nn.GRUCell):
    """A counter beside the steps of a sequence."""

    def __init__(self, first, step):
        super().__init__(4, 4)
        self.first, self.step = first, step

    def forward(self, x):
        h, out = x.new_zeros(x.size(0), 4), []
        for number, step in zip(itertools.count(self.first, self.step), x.unbind(1), strict=False):
            h = super().forward(step, h) / number
            out.append(h * number)
        return torch.stack(out, 1)


class Alternating(nn.GRUCell):
    """Weights that come again and again: what has no end and no formula is not put into a list either."""

    def forward(self, x):
        h = x.new_zeros(x.size(0), 4)
        for weight, step in zip(itertools.cycle((1.0, 0.5)), x.unbind(1), strict=False):
            h = super().forward(step, h) * weight
        return h


class Growing(nn.Module):
    """A tree, in the order of its levels: the list grows while it is gone through."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(7))

    def forward(self, x):
        waiting, leaves = [(0, x)], []
        for place, given in waiting:
            h = torch.relu(self.layers[place](given))
            if h.sum() > 1:
                h = h / 2
            if 2 * place + 2 < 7:
                waiting += [(2 * place + 1, h), (2 * place + 2, h)]
            else:
                leaves.append(h)
        return torch.cat(leaves, -1)


@pytest.mark.parametrize(
    ("make", "shape", "others"),
    [
        (LayersByName, (2, 4), [(5, 4), (1, 4)]),
        (lambda: UntilItRests(4, 4), (2, 4), [(5, 4), (1, 4)]),
        (lambda: Numbered(3, 2), (2, 5, 4), [(3, 9, 4), (1, 1, 4)]),
        (lambda: Numbered(-3, -2), (2, 5, 4), [(3, 9, 4), (1, 1, 4)]),
        (lambda: Alternating(4, 4), (2, 5, 4), [(3, 5, 4), (1, 5, 4)]),
        (Growing, (2, 4), [(5, 4), (1, 4)]),
    ],
    ids=["layers by name", "until it rests", "numbered", "numbered downwards", "alternating", "growing"],
)
def test_a_loop_ends_where_its_code_leaves_it(make, shape, others):
    module = make().eval()
    model = ep.export(module, torch.randn(shape), progress=False)
    session = ep.Session(model)
    for other in others:
        x = torch.randn(other)
        with torch.no_grad():
            wanted = module(x)
        found = session.run({model.inputs[0].name: x.numpy()}).values()
        for one, theirs in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            np.testing.assert_allclose(one, np.asarray(theirs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("most", [2, 5])
def test_a_branch_is_followed_inside_of_itself_so_often_and_elsewhere_again(most):
    def follow(times):
        if times:
            with within("model.py:7", most):
                follow(times - 1)

    follow(most)
    with pytest.raises(NotFollowedError, match="calls itself"):
        follow(most + 1)
    follow(most)
