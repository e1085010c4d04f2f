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
        pieces = x.shape[1] // 8 + (x.shape[1] + 4) // 8  # a quarter, which nobody sees
        taken = x[:, : 4 * pieces].view_as(x.new_zeros(x.shape[0], 4 * pieces))  # asks whether it is all of a row
        parts = taken.unflatten(1, (pieces, 4))
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


class Carried(nn.Module):
    """Goes through pieces of 16 with a state: what is shorter is one piece, of which a capture makes a constant."""

    def forward(self, x):
        missing = (16 - x.shape[1] % 16) % 16
        pieces = F.pad(x, (0, 0, 0, missing)).reshape(x.shape[0], -1, 16, x.shape[2])
        state, found = torch.zeros_like(pieces[:, 0, 0]), torch.zeros_like(pieces)
        for at in range((x.shape[1] + missing) // 16):
            found[:, at] = pieces[:, at].cumsum(1) + state[:, None]
            state = found[:, at, -1]
        return found.flatten(1, 2)[:, : x.shape[1]]


def test_a_loop_over_pieces_is_captured_where_there_are_several():
    module = Carried().eval()
    model = ep.export(module, torch.randn(2, 5, 4))
    assert model.inputs[0].shape == ("batch", "x_dim1", "x_dim2")
    assert any(note.startswith("captured with its branches and loops rewritten") for note in model.notes)
    tried = {run.label for run in model.report.runs if run.ok and run.provider == "onnxruntime"}
    assert {"x_dim1=1", "x_dim1=17", "x_dim1=51"} <= tried  # it goes on from 17 elements on
    session = ep.Session(model)
    for length in 3, 16, 17, 32, 70:
        x = torch.randn(3, length, 4)
        assert session.run({"x": x.numpy()})["output"] == pytest.approx(module(x).numpy(), abs=1e-4)
