"""Gradients that a module takes in its own ``forward``."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn

import entrepot as ep


class Slope(nn.Module):
    """How the sum of some function changes with its input, or with a weight."""

    def __init__(
        self, function: Callable[[Tensor, Tensor], Tensor], weight: Tensor, *, by_weight: bool = False
    ) -> None:
        super().__init__()
        self.function, self.weight, self.by_weight = function, nn.Parameter(weight), by_weight

    def forward(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            energy = (self.function(x, self.weight) ** 2).sum()
            (slope,) = torch.autograd.grad(energy, self.weight if self.by_weight else x)
        return slope


def attended(x: Tensor, weight: Tensor, **how: bool) -> Tensor:
    return F.scaled_dot_product_attention(x, x * weight.mean(), x.tanh(), **how)


SMOOTH = {
    "silu": lambda x, w: F.silu(x),
    "mish": lambda x, w: F.mish(x),
    "logsigmoid": lambda x, w: F.logsigmoid(x),
    "attention": attended,
    "causal attention": lambda x, w: attended(x, w, is_causal=True),
    "means of pairs": lambda x, w: F.avg_pool1d(x, 2),
    "means that overlap": lambda x, w: F.avg_pool1d(x, 3, 2, 1),
    "means without padding": lambda x, w: F.avg_pool1d(x, 3, 2, 1, count_include_pad=False),
    "means up to the end": lambda x, w: F.avg_pool1d(x, 3, 2, ceil_mode=True),
}
CONVOLUTIONS = {
    "plain": ((4, 3, 3), {}),
    "steps": ((4, 3, 3), {"stride": 2, "padding": 1}),
    "wide steps": ((4, 3, 2), {"stride": 3}),
    "distances": ((4, 3, 2), {"dilation": 3, "padding": 2}),
    "groups": ((6, 1, 3), {"groups": 3, "stride": 2}),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_of_functions(name: str) -> None:
    model = ep.export(Slope(SMOOTH[name], torch.randn(3)), torch.randn(2, 4, 9), progress=False, dynamic="all")
    assert "captured by" not in str(model)


@pytest.mark.parametrize("by_weight", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_gradients_of_convolutions(name: str, transposed: bool, by_weight: bool) -> None:
    shape, how = CONVOLUTIONS[name]
    if transposed:
        channels = shape[0] if "groups" in how else shape[1]
        shape = (channels, shape[1] if "groups" in how else shape[0], shape[2])
    function = F.conv_transpose1d if transposed else F.conv1d
    channels = shape[0] if transposed else 3
    module = Slope(lambda x, w: function(x, w, **how), torch.randn(shape), by_weight=by_weight)
    if by_weight and "groups" in how:
        with pytest.raises(ep.UnsupportedOpError, match="convolution_backward"):
            ep.export(module, torch.randn(2, channels, 11), progress=False)
        return
    model = ep.export(module, torch.randn(2, channels, 11), progress=False)
    assert all(isinstance(model.inputs[0].shape[axis], str) for axis in (0, 2))


def test_a_picture_of_what_decides_for_a_class() -> None:
    class Cam(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.SiLU(), nn.Conv2d(4, 5, 3))
            self.head = nn.Linear(5, 3)

        def forward(self, x: Tensor) -> Tensor:
            with torch.enable_grad():
                features = self.body(x).detach().requires_grad_()
                scores = self.head(F.silu(features).mean((2, 3)))
                (slope,) = torch.autograd.grad(scores.max(1).values.sum(), features)
            return F.relu((slope.mean((2, 3), keepdim=True) * features).sum(1))

    model = ep.export(Cam().eval(), torch.randn(2, 3, 14, 17), progress=False)
    assert all(isinstance(model.inputs[0].shape[axis], str) for axis in (0, 2, 3))
