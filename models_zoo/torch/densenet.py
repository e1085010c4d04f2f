from __future__ import annotations

import torch
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built


def densenet(*, classes: int = 10, size: int = 64, plan: tuple[int, ...] = (3, 6, 6, 4), growth: int = 12) -> Built:
    """DenseNet-BC (Huang et al., 2016); ``plan=(6, 12, 24, 16), growth=32`` is DenseNet-121."""
    samples = ((torch.randn(1, 3, size, size),), (torch.randn(4, 3, size, size),))
    return Built(DenseNet(classes, plan, growth), samples, frozenset({"x.0", "x.2", "x.3"}))


class DenseLayer(nn.Module):
    """Norm, ReLU, 1×1, norm, ReLU, 3×3, over everything the block has made so far."""

    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(inputs), nn.Conv2d(inputs, 4 * growth, 1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(4 * growth), nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, features: list[Tensor]) -> Tensor:
        x = self.conv1(torch.relu(self.norm1(torch.cat(features, dim=1))))
        return self.conv2(torch.relu(self.norm2(x)))


class DenseBlock(nn.ModuleList):
    """Layers that each see the concatenation of all before."""

    def forward(self, x: Tensor) -> Tensor:
        features = [x]
        for layer in self:
            features.append(layer(features))
        return torch.cat(features, 1)


class DenseNet(nn.Module):
    """Dense blocks with halving transitions."""

    def __init__(self, classes: int, plan: tuple[int, ...], growth: int) -> None:
        super().__init__()
        channels = 2 * growth
        layers: list[nn.Module] = [nn.Conv2d(3, channels, 7, 2, padding=3, bias=False), nn.MaxPool2d(3, 2, padding=1)]
        for index, count in enumerate(plan):
            layers.append(DenseBlock(DenseLayer(channels + position * growth, growth) for position in range(count)))
            channels += count * growth
            layers += [nn.BatchNorm2d(channels), nn.ReLU()]
            if index + 1 < len(plan):
                layers += [nn.Conv2d(channels, channels // 2, 1, bias=False), nn.AvgPool2d(2)]
                channels //= 2
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.adaptive_avg_pool2d(self.features(x), 1).flatten(1)
        return self.classifier(x)
