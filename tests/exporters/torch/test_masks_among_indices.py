"""Masks that stand beside other indices where a tensor is written to."""

import pytest
import torch
from torch import nn

import entrepot as ep


class Columns(nn.Module):
    """The mask is behind an axis that is left whole."""

    def __init__(self):
        super().__init__()
        self.register_buffer("chosen", torch.tensor([True, False, True, False, True]))

    def forward(self, x):
        x = x.clone()
        x[..., self.chosen, 0] = 2.0
        return x


class Computed(nn.Module):
    """The mask is an input, and so are the values."""

    def forward(self, x, mask, row):
        x = x.clone()
        x[:, mask] = row
        return x


class Squares(nn.Module):
    """The mask has two axes of its own, and what is there is added to."""

    def forward(self, x, mask):
        return torch.ops.aten.index_put(x, [None, mask], torch.ones(()), True)


class Beside(nn.Module):
    """The mask stands beside a place."""

    def forward(self, x, mask):
        x = x.clone()
        x[mask, torch.tensor([1])] = 0.5
        return x


def mask(*shape):
    return torch.arange(torch.Size(shape).numel()).reshape(shape) % 3 != 1


CASES = [
    (Columns(), lambda n: (torch.randn(n, 5, 3),)),
    (Computed(), lambda n: (torch.randn(n, n + 1, 3), mask(n + 1), torch.randn(3))),
    (Squares(), lambda n: (torch.randn(n, n + 1, n + 2, 3), mask(n + 1, n + 2))),
    (Beside(), lambda n: (torch.randn(n, 4, 3), mask(n))),
]


@pytest.mark.parametrize(("module", "call"), CASES, ids=lambda value: type(value).__name__)
def test_a_mask_beside_other_indices_is_written_at(module, call):
    model = ep.export(module.eval(), call(3), progress=False)
    for size in (3, 6):
        args = call(size)
        feeds = {spec.name: array.numpy() for spec, array in zip(model.inputs, args, strict=True)}
        (found,) = ep.Session(model, providers=["onnxruntime"]).run(feeds).values()
        torch.testing.assert_close(torch.from_numpy(found), module(*args))
