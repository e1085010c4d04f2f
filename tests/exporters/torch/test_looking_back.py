"""Loops that look at what they made some turns ago, or go on from it where what they are given ends."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep


class Prefixed(nn.Module):
    """Goes through a prefix, and on from its own results."""

    def __init__(self, more=3):
        super().__init__()
        self.cell, self.more = nn.LSTMCell(4, 4), more

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], 4)
        made = []
        for t in range(x.shape[1] + self.more):
            taken = x[:, t] if t < x.shape[1] else made[-1]
            h, c = self.cell(taken, (h, c))
            made.append(h)
        return torch.stack(made, 1)


class Shifted(nn.Module):
    """The same, with a queue of what came some turns before."""

    def forward(self, x):
        queue, made = deque([torch.zeros_like(x[:, 0])] * 3, maxlen=3), []
        for t in range(x.shape[1] + 2):
            now = x[:, t] if t < x.shape[1] else made[-1]
            old = queue[0]
            queue.append(now)
            made.append(torch.tanh(now - old * 0.5))
        return torch.stack(made[x.shape[1] :], 1)


class Back(nn.Module):
    """Each turn reads the result of one some turns ago."""

    def __init__(self, kind, distance=3):
        super().__init__()
        self.kind, self.distance = kind, distance

    def forward(self, x):
        made, far = [], self.distance
        for t in range(x.shape[1]):
            if self.kind == "place":
                old = made[t - far] if t >= far else torch.zeros_like(x[:, 0])
            elif self.kind == "from the end":
                old = made[-far] if len(made) >= far else torch.zeros_like(x[:, 0])
            elif t == 0:
                old = torch.zeros_like(x[:, 0])
            else:
                old = made[max(t - far, 0)]
            made.append(torch.tanh(x[:, t] + 0.5 * old))
        return torch.stack(made, 1)


class Smoothed(nn.Module):
    """A filter that leaves out rows without values, and a way back; its likelihood begins as a number."""

    def forward(self, x):
        state, made, likelihood = torch.zeros_like(x[:, 0]), [], 0.0
        for t in range(x.shape[1]):
            state = state * 0.5
            if x[:, t].sum() > 0:
                state = state + x[:, t]
                likelihood = likelihood - x[:, t].square().mean()
            made.append(state)
        for t in range(len(made) - 2, -1, -1):
            made[t] = made[t] + 0.1 * made[t + 1]
        return torch.stack(made, 1) + likelihood


MODULES = {
    "a number that becomes a tensor": Smoothed(),
    "a prefix": Prefixed(),
    "a queue": Shifted(),
    "a place": Back("place"),
    "a place two turns ago": Back("place", 2),
    "from the end": Back("from the end"),
    "the first at least": Back("the first"),
}


@pytest.mark.parametrize("name", MODULES)
def test_what_was_made_before_is_read(name):
    model = ep.export(MODULES[name], torch.randn(2, 5, 4), progress=False)
    assert all(isinstance(size, str) for size in model.inputs[0].shape[:2])
    session = ep.Session(model)
    for shape in ((2, 5, 4), (3, 9, 4), (1, 1, 4), (4, 2, 4)):
        x = torch.randn(shape)
        (found,) = session.run([x.numpy()]).values()
        np.testing.assert_allclose(found, MODULES[name](x).detach().numpy(), rtol=1e-4, atol=1e-5)
