"""Batch normalisation of rows whose number values decide."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from tests.exporters.torch.control_flow import x
from tests.exporters.torch.test_control_flow import results


class Voxels(nn.Module):
    """The mean of the points in each cell, and after a branch or a loop that skips what is empty."""

    def __init__(self, *, loops: bool) -> None:
        super().__init__()
        self.norm, self.loops = nn.BatchNorm1d(4), loops
        self.norm.running_mean.fill_(0.5)

    def forward(self, points):
        cells, place, count = torch.unique(points.floor().long(), dim=0, return_inverse=True, return_counts=True)
        means = torch.zeros(cells.size(0), 4).index_add_(0, place, points) / count[:, None]
        if not self.loops:
            if means.sum() > 0:
                means = means * 2
            return self.norm(means)[place]
        found = torch.zeros_like(means)
        for axis in range(2):
            rows = torch.nonzero(means[:, axis] > 0).squeeze(1)
            if rows.numel() == 0:
                continue
            found.index_add_(0, rows, means[rows] * 2)
        return self.norm(found)[place]


@pytest.mark.parametrize("loops", [False, True])
def test_rows_that_values_count_are_normalised(loops):
    module = Voxels(loops=loops).eval()
    model = ep.export(module, x(5, 4))
    assert str(model.inputs[0].shape[0]) == "batch"
    for given in (x(9, 4), -x(1, 4).abs(), -x(6, 4)):
        with torch.no_grad():
            expected = module(given)
        np.testing.assert_allclose(results(model, given)[0], expected.numpy(), rtol=1e-5, atol=1e-5)
