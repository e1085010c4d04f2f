"""Operators that ONNX has at given sizes only."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep


class Weighed(nn.Module):
    """Each volume of a batch has weights of its own: as many groups as there are volumes."""

    def forward(self, x: torch.Tensor, kernels: torch.Tensor) -> torch.Tensor:
        batch, channels, *sizes = x.shape
        result = F.conv3d(x.reshape(1, batch * channels, *sizes), kernels.reshape(batch, 3, 1, 1, 1), groups=batch)
        return result.reshape(batch, -1)


def test_the_other_axes_vary():
    sample = torch.randn(2, 3, 4, 5, 6), torch.randn(2, 3)
    model = ep.export(Weighed(), sample)
    assert model.inputs[0].shape == (2, 3, "x_dim2", "x_dim3", "x_dim4")
    (note,) = (note for note in model.notes if "ONNX has an operator at given sizes only" in note)
    assert "x.0 = 2, kernels.0 = 2" in note
