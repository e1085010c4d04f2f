from __future__ import annotations

import torch
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built

# expansion, channels, blocks, stride of the first (Sandler et al., 2018, table 2)
_MOBILENET = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
# expansion, channels, blocks, stride of the first, kernel (Tan and Le, 2019, table 1)
_EFFICIENTNET = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


def mobilenet_v2(*, classes: int = 10, size: int = 64, width: float = 0.25) -> Built:
    """MobileNetV2 at its true layer plan, with ``width`` times the channels."""
    return _built(MobileNetV2(classes, width), size)


def efficientnet(*, classes: int = 10, size: int = 64, width: float = 0.25) -> Built:
    """EfficientNet-B0 at its true layer plan, with ``width`` times the channels."""
    return _built(EfficientNet(classes, width), size)


def _built(module: nn.Module, size: int) -> Built:
    samples = ((torch.randn(1, 3, size, size),), (torch.randn(4, 3, size, size),))
    return Built(module, samples, frozenset({"x.0", "x.2", "x.3"}))


def _scaled(channels: int, width: float) -> int:
    return max(8, int(channels * width + 4) // 8 * 8)


def _conv(
    inputs: int, outputs: int, kernel: int = 1, stride: int = 1, *, groups: int = 1, activation: nn.Module
) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), activation)


class SqueezeExcitation(nn.Module):
    """Scales each channel by a gate computed from the channels' means."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(channels, squeezed, 1)
        self.expand = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        gate = x.mean((2, 3), keepdim=True)
        gate = nn.functional.silu(self.reduce(gate))
        return x * torch.sigmoid(self.expand(gate))


class InvertedResidual(nn.Module):
    """Expand, depthwise convolution, optional squeeze-excitation, project; a shortcut where shapes allow."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        stride: int,
        *,
        expansion: int,
        kernel: int,
        activation: nn.Module,
        squeeze: bool,
    ) -> None:
        super().__init__()
        hidden = inputs * expansion
        layers: list[nn.Module] = [_conv(inputs, hidden, activation=activation)] if expansion > 1 else []
        layers.append(_conv(hidden, hidden, kernel, stride, groups=hidden, activation=activation))
        if squeeze:
            layers.append(SqueezeExcitation(hidden, max(1, inputs // 4)))
        layers.append(_conv(hidden, outputs, activation=nn.Identity()))
        self.layers = nn.Sequential(*layers)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.residual else self.layers(x)


class MobileNetV2(nn.Module):
    """Inverted residuals with linear bottlenecks."""

    def __init__(self, classes: int, width: float) -> None:
        super().__init__()
        plan = tuple((*row, 3) for row in _MOBILENET)
        self.features, channels = _features(plan, width, nn.ReLU6(), squeeze=False)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(channels, classes))

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        x = nn.functional.adaptive_avg_pool2d(x, (1, 1))
        return self.classifier(x.reshape(x.shape[0], -1))


class EfficientNet(nn.Module):
    """MBConv blocks with squeeze-excitation."""

    def __init__(self, classes: int, width: float) -> None:
        super().__init__()
        self.features, channels = _features(_EFFICIENTNET, width, nn.SiLU(), squeeze=True)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(channels, classes))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).mean(dim=(-2, -1)))


def _features(
    plan: tuple[tuple[int, ...], ...], width: float, activation: nn.Module, *, squeeze: bool
) -> tuple[nn.Sequential, int]:
    """The stem, the blocks of the plan, and the last 1×1 convolution; with the number of channels out."""
    channels = _scaled(32, width)
    layers: list[nn.Module] = [_conv(3, channels, 3, 2, activation=activation)]
    for expansion, outputs, count, stride, kernel in plan:
        for position in range(count):
            block = InvertedResidual(
                channels,
                channels := _scaled(outputs, width),
                stride if position == 0 else 1,
                expansion=expansion,
                kernel=kernel,
                activation=activation,
                squeeze=squeeze,
            )
            layers.append(block)
    layers.append(_conv(channels, 4 * channels, activation=activation))
    return nn.Sequential(*layers), 4 * channels
