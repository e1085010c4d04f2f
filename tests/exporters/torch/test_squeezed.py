"""Axes that are squeezed out, and those that stay since they are no single ones."""

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.lowering.translate import translate


class Squeezed(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.dims = dims

    def forward(self, x):
        return x.sin().squeeze(self.dims) * 2


@pytest.mark.parametrize(("dims", "count"), [(0, 0), (1, 1), ((0, 2), 0), ((0, 1), 1), ((0, 1, 3), 2)])
def test_only_single_axes_are_squeezed_out_as_a_graph_is_translated(dims, count):
    sample = torch.randn(2, 1, 3, 1)
    model = translate(torch.export.export(Squeezed(dims), (sample,), strict=False))
    assert sum(node.op_type == "Squeeze" for node in model.graph) == count
    assert list(model.graph.outputs[0].shape.numpy()) == list(Squeezed(dims)(sample).shape)


class OneRow(nn.Module):
    """Takes pictures of every height that leaves one row, and says so at its last layer only."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(3, 4)

    def forward(self, x):
        return self.last(nn.functional.avg_pool2d(x, (32, 1)).squeeze(2).transpose(1, 2))


def test_an_axis_that_is_single_for_every_size_that_is_taken_is_squeezed_out():
    told = []
    module = OneRow().eval()
    model = ep.export(module, torch.randn(2, 3, 48, 5), progress=told.append)
    assert told.count("capturing the module") == 1
    assert model.inputs[0].shape == ("batch", 3, "height", "width")
    session = ep.Session(model)
    for height, width in ((32, 5), (48, 3), (63, 9)):
        x = torch.randn(2, 3, height, width)
        (got,) = session.run({"x": x.numpy()}).values()
        assert np.allclose(got, module(x).detach(), atol=1e-5)
    with pytest.raises(ep.EntrepotError):
        session.run({"x": np.zeros((2, 3, 64, 5), np.float32)})


@pytest.mark.parametrize("dims", [(), ((2, -1),), (2,)])
def test_what_is_single_in_the_sample_is_squeezed_out_however_that_is_asked(dims):
    class Squeezing(nn.Module):
        def forward(self, x):
            return x[:, :, : x.shape[2] // 4].squeeze(*dims) + 1

    x = torch.randn(2, 3, 5, 1)
    program = torch.export.export(Squeezing(), (x,), strict=False)
    model = ep.export(Squeezing(), x)
    (got,) = ep.Session(model).run({"x": x.numpy()}).values()
    assert got.shape == program.module()(x).shape
