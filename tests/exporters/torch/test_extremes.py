"""Sizes that a branch makes the larger of two, or the smaller: what is too short is padded, what is too long is cut."""

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


class Cut(nn.Module):
    """Looks at no more than the first six."""

    def forward(self, x):
        if x.shape[1] > 6:
            x = x[:, :6]
        return x.cumsum(1).reshape(x.shape[0], x.shape[1], -1, 2)


@pytest.mark.parametrize("module", [Filled(), Cut()], ids=lambda module: type(module).__name__)
def test_what_is_padded_or_cut_has_a_size_that_can_be_reasoned_about(module):
    model = ep.export(module.eval(), torch.randn(2, 5, 8))
    assert model.inputs[0].shape[:2] == ("batch", "x_dim1")
    assert any(note.startswith("captured with its branches and loops rewritten") for note in model.notes)
    session = ep.Session(model)
    for length in (1, 3, 4, 5, 6, 7, 12):
        x = torch.randn(3, length, 8)
        with torch.no_grad():
            expected = module(x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for wanted, got in zip(expected, session.run([x.numpy()]).values(), strict=True):
            np.testing.assert_allclose(got, wanted.numpy(), atol=1e-5)
