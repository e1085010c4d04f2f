"""Operators that fail within a ``try`` of a forward, which goes on without them."""

import pytest
import torch
from torch import nn
from torch.nn import functional

import entrepot as ep


class Padded(nn.Module):
    """A signal that is mirrored at its ends where it is long enough, and ends in zeros where it is not."""

    def __init__(self, margin):
        super().__init__()
        self.margin = margin

    def forward(self, x):
        try:
            y = functional.pad(x, (self.margin, self.margin), mode="reflect")
        except RuntimeError:
            y = functional.pad(x, (self.margin, self.margin))
        return y * 2


@pytest.mark.parametrize("margin", [5, 60])  # the sample is longer, and shorter
def test_what_fails_within_a_try_is_no_part_of_the_graph(margin):
    module = Padded(margin).eval()
    model = ep.export(module, torch.randn(2, 3, 50), progress=False)
    assert isinstance(model.inputs[0].shape[2], str)
    session = ep.Session(model, providers=["onnxruntime"])
    for length in (4, 50, 61, 90):
        x = torch.randn(2, 3, length)
        (found,) = session.run({model.inputs[0].name: x.numpy()}).values()
        assert torch.equal(torch.from_numpy(found), module(x))
