"""The tokens of a square grid, of which forward takes the root, may be of any square."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import entrepot as ep
from entrepot.exporters.axes.multiples import beside_square, squares_around


class Mixed(nn.Module):
    """A convolution over tokens, as in SegFormer."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Conv2d(6, 6, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        side = int(math.sqrt(x.shape[1]))
        return self.mix(x.transpose(1, 2).reshape(x.shape[0], -1, side, side)).flatten(2)


class Placed(nn.Module):
    """Places interpolated for a token of a class and a grid, as in vision transformers."""

    def __init__(self) -> None:
        super().__init__()
        self.places = nn.Parameter(torch.randn(1, 6, 4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        side = int((x.shape[1] - 1) ** 0.5)
        places = functional.interpolate(self.places, (side, side), mode="bilinear")
        return torch.cat([x[:, :1], x[:, 1:] + places.flatten(2).transpose(1, 2)], 1)


class Unpatched(nn.Module):
    """Patches put together, as by a masked autoencoder."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        side = math.isqrt(x.shape[1])
        if side * side != x.shape[1]:
            raise ValueError("not a square")
        x = x.reshape(x.shape[0], side, side, 2, 2, -1)
        return torch.einsum("nhwpqc->nchpwq", x).reshape(x.shape[0], -1, 2 * side, 2 * side)


@pytest.mark.parametrize(
    ("module", "beside", "side"),
    [(Mixed(), 0, 4), (Mixed(), 0, 5), (Mixed(), 0, 14), (Placed(), 1, 7), (Placed(), 1, 5), (Unpatched(), 0, 3)],
)
def test_any_square_is_taken_and_nothing_else(module: nn.Module, beside: int, side: int) -> None:
    torch.manual_seed(0)
    width = 12 if isinstance(module, Unpatched) else 6
    model = ep.export(module.eval(), torch.randn(2, side * side + beside, width), progress=False)
    assert isinstance(model.inputs[0].shape[1], str)
    session = ep.Session(model, providers=["onnxruntime"])
    for other in (2, 3, 6, 9, 20):
        x = torch.randn(3, other * other + beside, width)
        (found,) = session.run([x.numpy()]).values()
        np.testing.assert_allclose(found, module(x).detach().numpy(), rtol=1e-4, atol=1e-4)
    with pytest.raises(ep.EntrepotError):
        session.run([np.zeros((3, side * side + beside + 1, width), np.float32)])


def test_three_squares_in_equal_steps_are_squares() -> None:
    model = ep.export(Mixed().eval(), torch.randn(2, 25, 6), progress=False)
    assert not any("%" in condition for condition in model.conditions)


class Restored(nn.Module):
    """Tokens that were kept, and others in the places of those that were not."""

    def forward(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        x = torch.cat([x, x.new_zeros(x.shape[0], places.shape[1] - x.shape[1], x.shape[2])], 1)
        x = x.gather(1, places.unsqueeze(-1).expand(-1, -1, x.shape[2]))
        side = int(places.shape[1] ** 0.5)
        return x.reshape(x.shape[0], side, side, -1)


def test_a_grid_may_be_smaller_than_what_was_kept_in_the_sample() -> None:
    sample = torch.randn(2, 8, 6), torch.stack([torch.randperm(16) for _ in range(2)])
    model = ep.export(Restored(), sample, progress=False)
    x, places = torch.randn(1, 2, 6), torch.tensor([[3, 0, 2, 1]])
    (found,) = ep.Session(model, providers=["cpu"]).run([x.numpy(), places.numpy()]).values()
    np.testing.assert_array_equal(found, Restored()(x, places).numpy())


class Pooled(nn.Module):
    """The root of any number, which may happen to be a square in the sample."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        side = int(math.sqrt(x.shape[1]))
        return x[:, : side * side].sum(1) + side


def test_a_number_that_happens_to_be_a_square_is_none() -> None:
    model = ep.export(Pooled(), torch.randn(2, 16, 3), progress=False)
    for length in (5, 18, 24, 25):
        x = torch.randn(2, length, 3)
        (found,) = ep.Session(model, providers=["cpu"]).run([x.numpy()]).values()
        np.testing.assert_allclose(found, Pooled()(x).numpy(), rtol=1e-4, atol=1e-4)


def test_what_is_more_than_a_square() -> None:
    assert [beside_square(size) for size in (16, 17, 24, 25)] == [0, 1, 8, 0]
    assert squares_around(50) == [65, 82]
    assert squares_around(24) == []
