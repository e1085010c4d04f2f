from __future__ import annotations

import torch
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built


def mlp(*, features: int = 16, width: int = 64, classes: int = 5) -> Built:
    """A plain feed-forward network."""
    module = nn.Sequential(
        nn.Linear(features, width),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(width, width),
        nn.GELU(),
        nn.Linear(width, classes),
    )
    return Built(_Named(module), ((torch.randn(1, features),), (torch.randn(6, features),)), frozenset({"x.0"}))


class _Named(nn.Module):
    def __init__(self, layers: nn.Sequential) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, x: Tensor) -> Tensor:
        return torch.log_softmax(self.layers(x), dim=-1)
