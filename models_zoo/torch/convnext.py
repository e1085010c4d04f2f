from __future__ import annotations

import torch
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built


def convnext(
    *,
    classes: int = 10,
    size: int = 64,
    depths: tuple[int, ...] = (1, 1, 3, 1),
    widths: tuple[int, ...] = (24, 48, 96, 192),
) -> Built:
    """ConvNeXt (Liu et al., 2022); ``depths=(3, 3, 9, 3), widths=(96, 192, 384, 768)`` is the tiny one."""
    samples = ((torch.randn(1, 3, size, size),), (torch.randn(3, 3, size, size),))
    return Built(ConvNeXt(classes, depths, widths), samples, frozenset({"x.0", "x.2", "x.3"}))


class ChannelNorm(nn.LayerNorm):
    """LayerNorm over the channels of N, C, H, W."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Block(nn.Module):
    """Depthwise 7×7, then a two-layer perceptron per pixel, scaled, added."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.expand, self.project = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.scale = nn.Parameter(torch.rand(channels))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.scale * self.project(nn.functional.gelu(self.expand(y)))
        return x + y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    """Patchify stem, stages with 2×2 downsampling between, pooled classifier."""

    def __init__(self, classes: int, depths: tuple[int, ...], widths: tuple[int, ...]) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, widths[0], 4, 4), ChannelNorm(widths[0])]
        for index, (depth, width) in enumerate(zip(depths, widths, strict=True)):
            if index:
                layers += [ChannelNorm(widths[index - 1]), nn.Conv2d(widths[index - 1], width, 2, 2)]
            layers += [Block(width) for _ in range(depth)]
        self.features = nn.Sequential(*layers)
        self.norm, self.classifier = nn.LayerNorm(widths[-1]), nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.norm(self.features(x).mean([-2, -1])))
