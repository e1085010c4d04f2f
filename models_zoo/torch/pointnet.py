from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built


def pointnet(*, classes: int = 8, points: int = 64, width: int = 16) -> Built:
    """PointNet (Qi et al., 2016) with the 3×3 input alignment."""
    samples = ((torch.randn(1, points, 3),), (torch.randn(4, points + 9, 3),))
    return Built(PointNet(classes, width), samples, frozenset({"points.0", "points.1"}))


def _shared(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Conv1d(inputs, outputs, 1), nn.BatchNorm1d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


class Alignment(nn.Module):
    """A 3×3 matrix per cloud, near the identity."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.features = _shared(3, width, 4 * width)
        self.matrix = nn.Sequential(nn.Linear(4 * width, width), nn.ReLU(), nn.Linear(width, 9))

    def forward(self, x: Tensor) -> Tensor:
        pooled = self.features(x).max(dim=2).values
        return self.matrix(pooled).view(-1, 3, 3) + torch.eye(3, device=x.device)


class PointNet(nn.Module):
    """Shared layers per point, the maximum over points, a classifier."""

    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        self.align, self.features = Alignment(width), _shared(3, width, 2 * width, 8 * width)
        self.classifier = nn.Sequential(
            nn.Linear(8 * width, 4 * width),
            nn.BatchNorm1d(4 * width),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(4 * width, classes),
        )

    def forward(self, points: Tensor) -> Tensor:
        x = points.transpose(2, 1)
        x = torch.bmm(points, self.align(x)).transpose(2, 1)
        x = torch.max(self.features(x), 2, keepdim=True)[0]
        return self.classifier(x.flatten(1))
