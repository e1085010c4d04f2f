"""What holds in the first turn of a loop only: its number is 0, and variables may be one tensor."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
import torch

import entrepot as ep
from tests.exporters.torch.control_flow import Module, x
from tests.exporters.torch.test_control_flow import results, tensors


class Table(Module):
    """Cells from the ones above and before, where there are any."""

    def forward(self, x):
        table = torch.zeros(x.shape)
        for row in range(x.shape[1]):
            for column in range(x.shape[2]):
                if row == 0 and column == 0:
                    continue
                if column == 0:
                    table[:, row, 0] = table[:, row - 1, 0] + x[:, row - 1, 0]
                elif row == 0:
                    table[:, 0, column] = table[:, 0, column - 1] - x[:, 0, column - 1]
                else:
                    table[:, row, column] = torch.maximum(table[:, row - 1, column], 2 * table[:, row, column - 1])
        return table


class Differences(Module):
    """The one before, or itself in the first turn, by a branch and by a bound."""

    def forward(self, x):
        made = torch.ones_like(x)
        for t in range(x.shape[1]):
            if t > 0:
                made[:, t] = x[:, t] - x[:, max(t - 1, 0)] * made[:, t - 1]
            else:
                made[:, t] = x[:, max(t - 1, 0)]
        return made


class Counted(Module):
    """A number of its own that counts from 0 and begins anew."""

    def forward(self, x):
        seen, total = 0, x.new_zeros(x.shape[0], x.shape[2])
        for row in x.unbind(1):
            total = row if seen == 0 else total + seen * row
            seen = seen + 1 if seen < 2 else 0
        return total


class Delayed(Module):
    """What was some turns ago, in queues that begin with one tensor in all places, and in two variables."""

    def forward(self, x):
        zeros = torch.zeros(x.shape[0], 4)
        queues = [deque([zeros] * delay, maxlen=delay) for delay in (1, 3)]
        older = old = zeros
        made = []
        for row in x.unbind(1):
            total = row
            for queue in queues:
                total = total + queue[0]
                queue.append(total)
            older, old = old, torch.tanh(old + older + total)
            made.append(older)
        return torch.stack(made, 1)


@pytest.mark.parametrize("module", [Table(), Differences(), Counted(), Delayed()], ids=lambda each: type(each).__name__)
def test_the_first_turn_is_told_from_the_others_at_every_length(module):
    model = ep.export(module, x(2, 5, 4))
    assert [str(size) for size in model.inputs[0].shape][:2] == ["batch", "x_dim1"]
    for steps in (1, 2, 7):
        given = x(3, steps, 4)
        for got, want in zip(results(model, given), tensors(module(given)), strict=True):
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-5, atol=1e-6)
