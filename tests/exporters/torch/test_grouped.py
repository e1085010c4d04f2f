"""Convolutions with one group for each item of a batch, or with margins that follow a size."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep


class Dynamic(nn.Module):
    """Each image is filtered by kernels of its own; torch takes all as one, in a batch of its own or in none."""

    def __init__(self, call, how, lead=(1,)):
        super().__init__()
        self.call, self.how, self.lead = call, how, lead

    def forward(self, x, kernels):
        batch, channels, *sizes = x.shape
        flat = x.reshape(*self.lead, batch * channels, *sizes)
        turned = self.call in (F.conv_transpose1d, F.conv_transpose2d)
        weight = (kernels.transpose(1, 2) if turned else kernels).flatten(0, 1)
        return self.call(flat, weight, groups=batch, **self.how).reshape(batch, kernels.shape[1], -1)


WAYS = {
    "plain": (F.conv2d, {}),
    "padded": (F.conv2d, {"padding": 1}),
    "all": (F.conv2d, {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2)}),
    "same size": (F.conv2d, {"padding": "same", "dilation": (1, 2)}),
    "same length, one axis": (F.conv1d, {"padding": "same"}),
    "one axis": (F.conv1d, {"stride": 2, "padding": 1}),
    "transposed": (F.conv_transpose2d, {}),
    "transposed, upsampling": (F.conv_transpose2d, {"stride": 2, "padding": 1, "output_padding": 1}),
    "transposed, all": (
        F.conv_transpose2d,
        {"stride": (3, 1), "padding": (0, 3), "output_padding": (2, 0), "dilation": (2, 1)},
    ),
    "transposed, one axis": (F.conv_transpose1d, {"stride": 2, "padding": 1}),
}


@pytest.mark.parametrize(
    ("name", "lead"), [*((name, (1,)) for name in WAYS), *((name, ()) for name in WAYS if "one axis" in name)]
)
def test_a_group_for_each_item_of_the_batch(name, lead):
    function, how = WAYS[name]
    module, dims = Dynamic(function, how, lead), 1 if name.endswith("one axis") else 2
    generator = torch.Generator().manual_seed(0)

    def call(batch, *sizes):
        shapes = (batch, 3, *sizes[:dims]), (batch, 4, 3, *[3] * dims)
        return tuple(torch.randn(shape, generator=generator) for shape in shapes)

    dynamic = {"x": {0: "batch", **{2 + axis: f"size{axis}" for axis in range(dims)}}, "kernels": {0: "batch"}}
    model = ep.export(module, call(2, 8, 9), dynamic=dynamic)
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for given in (call(3, 7, 12), call(1, 10, 6)):
        feeds = {spec.name: tensor.numpy() for spec, tensor in zip(model.inputs, given, strict=True)}
        (found,) = session.run(None, feeds)
        assert np.allclose(found, module(*given).numpy(), rtol=1e-4, atol=1e-5)


class Filtered(nn.Module):
    """A signal, an image or a volume with the same kernel along each of its axes, in full."""

    def forward(self, x, kernel):
        margin, dims = kernel.shape[0] - 1, x.dim() - 2
        weight = kernel.reshape(1, 1, -1, *[1] * (dims - 1))
        padding = margin if dims == 1 else (margin, *[0] * (dims - 1))
        return (F.conv1d, F.conv2d, F.conv3d)[dims - 1](x, weight, padding=padding)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_a_margin_by_the_width_of_a_kernel(dims):
    def call(width):
        return torch.randn(2, 1, *range(5, 5 + dims)), torch.randn(width)

    model = ep.export(Filtered(), call(3), dynamic={"kernel": {0: "width"}})
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for width in (1, 4):
        given = call(width)
        feeds = {spec.name: tensor.numpy() for spec, tensor in zip(model.inputs, given, strict=True)}
        (found,) = session.run(None, feeds)
        assert np.allclose(found, Filtered()(*given).numpy(), rtol=1e-4, atol=1e-5)


class Restored(nn.Module):
    """Back to the size that it had before."""

    def __init__(self, rank):
        super().__init__()
        torch.manual_seed(0)
        kinds = {
            1: (nn.Conv1d, nn.ConvTranspose1d),
            2: (nn.Conv2d, nn.ConvTranspose2d),
            3: (nn.Conv3d, nn.ConvTranspose3d),
        }
        down, up = kinds[rank]
        self.down, self.up = down(2, 4, 3, 2, 1), up(4, 2, 3, 2, 1)

    def forward(self, x):
        return self.up(self.down(x), output_size=x.size())


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_size_of_a_transposed_convolution_follows_another(rank):
    module = Restored(rank).eval()
    model = ep.export(module, torch.randn(1, 2, *(9, 12, 7)[:rank]))
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for size in ((1, 2, 9, 12, 7), (2, 2, 8, 5, 6)):
        given = torch.randn(size[: rank + 2])
        (found,) = session.run(None, {"x": given.numpy()})
        np.testing.assert_allclose(found, module(given).detach().numpy(), rtol=1e-4, atol=1e-5)
