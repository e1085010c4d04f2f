"""Sizes that a branch makes the larger of two, or the smaller: what is too short is padded, what is long is capped."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep


class Filled(nn.Module):
    """As caches of convolutions are filled: what is too short is padded, and the last elements are kept."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(8, 8, 4, groups=8, padding=3)

    def forward(self, x):
        batch, length, _ = x.shape
        y = x.transpose(1, 2)
        if y.shape[-1] < 4:
            y = F.pad(y, (4 - y.shape[-1], 0))
        kept = y[..., -4:].clone()
        y = self.conv(y)[:, :, : y.shape[-1]][:, :, -length:]
        return y.transpose(1, 2).view(batch, length, -1, 4).flatten(2), kept


class Capped(nn.Module):
    """Takes as many columns as there are, but no more than six, in a tensor of its own."""

    def forward(self, x):
        made = torch.zeros(x.shape[0], 6)
        if x.shape[1] < 6:
            made = torch.zeros(x.shape[0], x.shape[1])
        return (made + x.sum(1, keepdim=True)).reshape(x.shape[0], -1), made.cumsum(1)


@pytest.mark.parametrize(("module", "rest"), [(Filled(), (8,)), (Capped(), ())], ids=lambda each: type(each).__name__)
def test_what_is_padded_or_capped_has_a_size_that_can_be_reasoned_about(module, rest):
    model = ep.export(module.eval(), torch.randn(2, 5, *rest))
    assert model.inputs[0].shape == ("batch", "x_dim1", *rest)
    assert None not in model.outputs[0].shape
    assert any(note.startswith("captured with its branches and loops rewritten") for note in model.notes)
    session = ep.Session(model)
    for length in (1, 3, 4, 5, 6, 7, 12):
        x = torch.randn(3, length, *rest)
        with torch.no_grad():
            expected = module(x)
        for wanted, got in zip(expected, session.run([x.numpy()]).values(), strict=True):
            np.testing.assert_allclose(got, wanted.numpy(), atol=1e-5)
