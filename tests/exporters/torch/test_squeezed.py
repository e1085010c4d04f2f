"""Axes that are squeezed out, and those that stay since they are no single ones."""

import pytest
import torch
from torch import nn

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
