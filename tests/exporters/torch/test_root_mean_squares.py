"""Normalisations by root mean squares, with whatever is added to the squares, as onnxruntime computes them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import entrepot as ep


class Normalised(nn.Module):
    def __init__(self, function: Callable[[Tensor, Tensor], Tensor], *added: int) -> None:
        super().__init__()
        self.function = function
        self.added, self.scale = nn.Parameter(torch.rand(added) + 0.5), nn.Parameter(torch.rand(8) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, self.added) * self.scale


def mean(x: Tensor) -> Tensor:
    return x.square().mean(-1, keepdim=True)


def centred(x: Tensor) -> Tensor:
    return x - x.mean(-1, keepdim=True)


MODULES = {
    "a number": Normalised(lambda x, _: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 0.7), 1),
    "a weight": Normalised(lambda x, e: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + e), 1),
    "a weight before": Normalised(lambda x, e: x * torch.rsqrt(e + x.pow(2).mean(-1, keepdim=True)), 1),
    "a row": Normalised(lambda x, e: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + e), 8),
    "a row before": Normalised(lambda x, e: x * torch.rsqrt(e + x.pow(2).mean(-1, keepdim=True)), 8),
    "centred": Normalised(lambda x, e: centred(x) * torch.rsqrt(mean(centred(x)) + e), 1),
    "centred, a weight before": Normalised(
        lambda x, e: centred(x) * torch.rsqrt(e + centred(x).pow(2).mean(-1, keepdim=True)), 1
    ),
    "over two axes": Normalised(lambda x, e: x * torch.rsqrt(x.pow(2).mean((1, 2), keepdim=True) + e), 1),
    "over all": Normalised(lambda x, e: x * torch.rsqrt(x.pow(2).mean() + e), 1),
}


@pytest.mark.parametrize("name", MODULES)
def test_what_is_added_counts(name: str) -> None:
    model = ep.export(MODULES[name], torch.randn(3, 5, 8) * 0.5, progress=False)
    assert model.report is not None
    assert model.report.ok
