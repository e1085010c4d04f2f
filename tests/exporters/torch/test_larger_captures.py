"""Small samples: what they are divided into is of size 1 in a capture, and of more in a larger one."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep


class Pieces(nn.Module):
    """Seven samples are one piece of four; with four pieces, the result has another rank."""

    def forward(self, x):
        pieces = x.shape[1] // 4
        parts = x[:, : 4 * pieces].view(x.shape[0], pieces, 4)
        return F.adaptive_avg_pool1d(parts.transpose(1, 2), max(1, pieces // 2)).squeeze()


def test_an_axis_that_a_small_capture_fixes_varies_in_a_larger_one():
    module = Pieces().eval()
    model = ep.export(module, torch.randn(2, 7))
    assert model.inputs[0].shape == ("batch", "x_dim1")
    assert any(note.startswith("captured as it is at larger sizes, since as it is: fixes x.1") for note in model.notes)
    for length in 4, 7, 8, 15:
        x = torch.randn(2, length)
        assert ep.Session(model).run({"x": x.numpy()})["output"] == pytest.approx(module(x).numpy(), abs=1e-6)
    with pytest.raises(ep.InputError, match="x_dim1 <= 15"):
        ep.Session(model).run({"x": torch.randn(2, 16).numpy()})
