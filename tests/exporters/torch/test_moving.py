"""Modules that make sure of a type or a device while they run: nothing moves where nothing has to."""

from __future__ import annotations

import torch
from torch import nn

import entrepot as ep


class InItsType(nn.Module):
    """Like the routers of experts, which compute in a type of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.layer = self.layer.to(torch.float32)
        return self.layer(x.to("cpu")).softmax(-1)


def test_a_module_that_is_what_it_is_to_be_is_captured_as_it_is() -> None:
    model = ep.export(InItsType().eval(), torch.randn(2, 4))
    assert model.report
    assert [spec.shape for spec in model.inputs] == [("batch", 4)]
