"""Operators that ONNX has at given sizes only."""

from __future__ import annotations

import numpy as np
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


class Levels(nn.Module):
    """Boxes by their size; the columns of a box are read one by one, which only four allow."""

    def corners(self, boxes):
        return torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:3] * torch.ones(1, 2)], 1)

    def forward(self, boxes):
        found = boxes.new_zeros(boxes.shape[0], 4)
        for level in range(3):
            index = torch.nonzero(boxes[:, 2].round().abs() == level).squeeze(1)
            if index.numel() == 0:
                continue
            found = found.index_copy(0, index, self.corners(boxes[index]) * (level + 1))
        return found


def test_an_axis_that_a_branch_cannot_be_captured_with_is_fixed_and_others_vary():
    boxes = torch.randn(6, 4)
    model = ep.export(Levels(), boxes, progress=False)
    assert "captured with its branches and loops rewritten" in str(model)
    assert isinstance(model.inputs[0].shape[0], str)
    for count in (1, 9):
        boxes = torch.randn(count, 4)
        (found,) = ep.Session(model).run([boxes.numpy()]).values()
        np.testing.assert_allclose(found, Levels()(boxes).numpy(), rtol=1e-5, atol=1e-6)
