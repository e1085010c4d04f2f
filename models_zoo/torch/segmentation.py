from __future__ import annotations

import itertools

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built


def unet(*, classes: int = 3, size: int = 48, width: int = 8, depth: int = 3) -> Built:
    """U-Net (Ronneberger et al., 2015); odd sizes are handled by upsampling to the skip's own size."""
    return _built(UNet(classes, width, depth), size)


def dilated_segmentation(*, classes: int = 5, size: int = 48, width: int = 16) -> Built:
    """DeepLab-like (Chen et al., 2017): dilated backbone, atrous pyramid, logits at the image's size."""
    return _built(DilatedSegmentation(classes, width), size)


def _built(module: nn.Module, size: int) -> Built:
    samples = ((torch.randn(1, 3, size, size),), (torch.randn(2, 3, size + 16, size),))
    return Built(module, samples, frozenset({"x.0", "x.2", "x.3"}))


def _conv(inputs: int, outputs: int, kernel: int = 3, stride: int = 1, dilation: int = 1) -> nn.Sequential:
    padding = dilation * (kernel // 2)
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, dilation, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class UNet(nn.Module):
    """Contracting and expanding path with skips between them."""

    def __init__(self, classes: int, width: int, depth: int) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(depth + 1)]
        self.stem = nn.Sequential(_conv(3, width), _conv(width, width))
        pairs = list(itertools.pairwise(widths))
        self.down = nn.ModuleList(nn.Sequential(nn.MaxPool2d(2), _conv(a, b), _conv(b, b)) for a, b in pairs)
        self.up = nn.ModuleList(nn.Sequential(_conv(a + b, a), _conv(a, a)) for a, b in reversed(pairs))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips = [self.stem(x)]
        for down in self.down:
            skips.append(down(skips[-1]))
        y = skips.pop()
        for up in self.up:
            skip = skips.pop()
            y = F.interpolate(y, size=skip.shape[-2:], mode="nearest")
            y = up(torch.cat([skip, y], dim=1))
        return self.head(y)


class AtrousPyramid(nn.Module):
    """Parallel dilated convolutions and the image's mean, concatenated."""

    def __init__(self, inputs: int, outputs: int, rates: tuple[int, ...] = (2, 4, 6)) -> None:
        super().__init__()
        branches = [_conv(inputs, outputs, 1), *(_conv(inputs, outputs, 3, dilation=rate) for rate in rates)]
        self.branches = nn.ModuleList(branches)
        self.pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), _conv(inputs, outputs, 1))
        self.project = _conv((len(branches) + 1) * outputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        features = [branch(x) for branch in self.branches]
        pooled = F.interpolate(self.pooled(x), size=x.shape[-2:], mode="bilinear", align_corners=False)
        return self.project(torch.cat([*features, pooled], dim=1))


class DilatedSegmentation(nn.Module):
    """A small dilated backbone with an atrous pyramid on top."""

    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            _conv(3, width, stride=2), _conv(width, 2 * width, stride=2), _conv(2 * width, 2 * width, dilation=2)
        )
        self.pyramid = AtrousPyramid(2 * width, width)
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Conv2d(width, classes, 1))

    def forward(self, x: Tensor) -> Tensor:
        logits = self.head(self.pyramid(self.backbone(x)))
        return F.interpolate(logits, size=x.shape[2:], mode="bilinear", align_corners=False)
