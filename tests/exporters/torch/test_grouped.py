"""Convolutions with one group for each item of a batch."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep


class Dynamic(nn.Module):
    """Each image is filtered by kernels of its own."""

    def __init__(self, dims, how):
        super().__init__()
        self.dims, self.how = dims, how

    def forward(self, x, kernels):
        batch, channels, *sizes = x.shape
        flat = x.reshape(1, batch * channels, *sizes)
        weight = kernels.reshape(-1, channels, *kernels.shape[3:])
        call = F.conv1d if self.dims == 1 else F.conv2d
        return call(flat, weight, groups=batch, **self.how).reshape(batch, kernels.shape[1], -1)


WAYS = {
    "plain": (2, {}),
    "padded": (2, {"padding": 1}),
    "all": (2, {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2)}),
    "one axis": (1, {"stride": 2, "padding": 1}),
}


@pytest.mark.parametrize("name", WAYS)
def test_a_group_for_each_item_of_the_batch(name):
    dims, how = WAYS[name]
    module = Dynamic(dims, how)
    generator = torch.Generator().manual_seed(0)

    def call(batch, *sizes):
        shapes = (batch, 3, *sizes[:dims]), (batch, 4, 3, *[3] * dims)
        return tuple(torch.randn(shape, generator=generator) for shape in shapes)

    model = ep.export(module, call(2, 8, 9))
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for given in (call(3, 7, 12), call(1, 10, 6)):
        feeds = {spec.name: tensor.numpy() for spec, tensor in zip(model.inputs, given, strict=True)}
        (found,) = session.run(None, feeds)
        assert np.allclose(found, module(*given).numpy(), rtol=1e-4, atol=1e-5)
