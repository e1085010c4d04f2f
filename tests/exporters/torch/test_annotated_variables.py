"""Variables with annotations inside of branches that become functions."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

import entrepot as ep


class Annotated(nn.Module):
    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        scale: float
        if y is None:
            y: Tensor = x * 2
        if x.sum() > 0:
            y: Tensor = y + 1
            scale = 3.0
        else:
            scale = 1.0
        return y * scale


def test_variables_annotated_in_branches_are_followed():
    model = ep.export(Annotated(), torch.ones(3), progress=False)
    for value in (torch.ones(4), -torch.ones(2)):
        (found,) = ep.Session(model, providers=["onnxruntime"]).run((value.numpy(),)).values()
        np.testing.assert_array_equal(found, Annotated()(value).numpy())
