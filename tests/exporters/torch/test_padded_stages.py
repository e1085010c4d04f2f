"""Pictures that are padded to a multiple where they are none, stage by stage: their sizes stay known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep
from tests.exporters.torch.control_flow import x


class Stage(nn.Module):
    def __init__(self, channels: int, by: int) -> None:
        super().__init__()
        self.by, self.cut = by, nn.Conv2d(channels, 4, by, by)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        height, width = pictures.shape[-2:]
        if width % self.by != 0:
            pictures = F.pad(pictures, (0, self.by - width % self.by))
        if height % self.by != 0:
            pictures = F.pad(pictures, (0, 0, 0, self.by - height % self.by))
        return torch.relu(self.cut(pictures))


class Stages(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stages = nn.ModuleList([Stage(3, 4), Stage(4, 2), Stage(4, 2)])

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        for stage in self.stages:
            pictures = stage(pictures)
        return pictures


class Squares(Stages):
    """Of the tokens of a picture it takes the root for its side."""

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        tokens = super().forward(pictures).flatten(2)
        side = math.floor(tokens.shape[2] ** 0.5)
        return tokens.reshape(len(pictures), 4, side, side)


class Merging(nn.Module):
    """What is padded is asked outside of the branch, of both sides, and cut into even and odd places."""

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        height, width = pictures.shape[-2:]
        odd = (height % 2 == 1) or (width % 2 == 1)
        if odd:
            pictures = F.pad(pictures, (0, width % 2, 0, height % 2))
        rows = pictures[..., 0::2, :], pictures[..., 1::2, :]
        return torch.cat([each[..., at::2] for each in rows for at in (0, 1)], 1)


@pytest.mark.parametrize(
    ("kind", "sample", "sizes"),
    [
        (Squares, (32, 32), [(16, 16), (31, 31), (33, 33), (64, 64)]),
        (Stages, (32, 48), [(16, 32), (31, 18), (33, 65), (64, 5)]),
        (Stages, (30, 45), [(16, 32), (31, 18), (33, 65), (64, 5)]),
        (Merging, (8, 12), [(8, 11), (7, 12), (3, 5), (1, 1)]),
        (Merging, (7, 12), [(8, 11), (8, 12), (3, 5), (1, 1)]),
    ],
)
def test_a_picture_padded_at_every_stage_has_any_size(kind, sample, sizes):
    module = kind().eval()
    model = ep.export(module, x(2, 3, *sample))
    assert not model.conditions or model.conditions == ("pictures.2 == pictures.3",)
    session = ep.Session(model)
    for height, width in sizes:
        given = x(1, 3, height, width)
        got = session.run({"pictures": given.numpy()})["output"]
        np.testing.assert_allclose(got, module(given).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        (Stages, ("batch", 4, "(((height + 3)//4 + 1)//2 + 1)//2", "(((width + 3)//4 + 1)//2 + 1)//2")),
        (Merging, ("batch", "4*pictures_dim1", "(pictures_dim2 + 1)//2", "(pictures_dim3 + 1)//2")),
    ],
)
def test_the_size_of_the_result_is_a_formula(kind, shape):
    (output,) = ep.export(kind().eval(), x(2, 3, 32, 48)).outputs
    assert output.shape == shape
