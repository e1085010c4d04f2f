from __future__ import annotations

import torch
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built


def resnet18(*, classes: int = 10, size: int = 64, width: int = 64) -> Built:
    """ResNet-18 (He et al., 2015)."""
    return _built(ResNet(BasicBlock, (2, 2, 2, 2), width, classes), size)


def resnet50(*, classes: int = 1000, size: int = 64, width: int = 64) -> Built:
    """ResNet-50 (He et al., 2015), the stride on the 3×3 convolution."""
    return _built(ResNet(Bottleneck, (3, 4, 6, 3), width, classes), size)


def _built(module: nn.Module, size: int) -> Built:
    samples = ((torch.randn(1, 3, size, size),), (torch.randn(4, 3, size, size),))
    return Built(module, samples, frozenset({"x.0", "x.2", "x.3"}))


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False), nn.BatchNorm2d(outputs)
    )


class BasicBlock(nn.Module):
    """Two 3×3 convolutions and a shortcut."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = _conv(inputs, width, 3, stride)
        self.conv2 = _conv(width, width, 3)
        self.shortcut = nn.Identity() if stride == 1 and inputs == width else _conv(inputs, width, 1, stride)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv2(self.relu(self.conv1(x)))
        y += self.shortcut(x)
        return self.relu(y)


class Bottleneck(nn.Module):
    """1×1 down, 3×3, 1×1 up by four, and a shortcut."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * self.expansion
        self.conv1 = _conv(inputs, width, 1)
        self.conv2 = _conv(width, width, 3, stride)
        self.conv3 = _conv(width, outputs, 1)
        self.shortcut = nn.Identity() if stride == 1 and inputs == outputs else _conv(inputs, outputs, 1, stride)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.conv1(x))
        y = self.conv3(self.relu(self.conv2(y)))
        y += self.shortcut(x)
        return self.relu(y)


class ResNet(nn.Module):
    """Stem, four stages, global average pool, linear classifier."""

    def __init__(self, block: type[BasicBlock | Bottleneck], plan: tuple[int, ...], width: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(_conv(3, width, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1))
        channels, stages = width, []
        for index, count in enumerate(plan):
            stage_width = width * 2**index
            for position in range(count):
                stride = 2 if index > 0 and position == 0 else 1
                stages.append(block(channels, stage_width, stride))
                channels = stage_width * block.expansion
        self.stages = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stages(self.stem(x))
        return self.classifier(torch.flatten(self.pool(x), 1))
