from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built


def swin(
    *,
    classes: int = 10,
    size: int = 64,
    window: int = 4,
    width: int = 24,
    plan: tuple[int, ...] = (2, 2),
    heads: int = 3,
) -> Built:
    """Swin (Liu et al., 2021); ``size=224, window=7, width=96, plan=(2, 2, 6, 2), classes=1000`` is the tiny one.

    As in the original, windows and their masks belong to one image size: only the batch is free.
    """
    samples = ((torch.randn(1, 3, size, size),), (torch.randn(3, 3, size, size),))
    return Built(
        Swin(classes=classes, size=size, window=window, width=width, plan=plan, heads=heads),
        samples,
        frozenset({"x.0"}),
    )


def partition(x: Tensor, window: int) -> Tensor:
    """(B, H, W, C) to (B · windows, window², C)."""
    batch, height, width, channels = x.shape
    x = x.view(batch, height // window, window, width // window, window, channels)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, window * window, channels)


def unpartition(windows: Tensor, window: int, height: int, width: int) -> Tensor:
    """Undo ``partition``."""
    x = windows.view(-1, height // window, width // window, window, window, windows.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, height, width, windows.shape[-1])


class WindowAttention(nn.Module):
    """Attention inside each window, with a bias learned per relative position."""

    relative: Tensor

    def __init__(self, width: int, window: int, heads: int) -> None:
        super().__init__()
        self.heads, self.area = heads, window * window
        self.projections, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.bias = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.2)
        grid = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        offsets = grid[:, :, None] - grid[:, None, :] + window - 1
        self.register_buffer("relative", offsets[0] * (2 * window - 1) + offsets[1], persistent=False)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        count, area, width = x.shape
        q, k, v = self.projections(x).reshape(count, area, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q * (width // self.heads) ** -0.5) @ k.transpose(-2, -1)
        scores = scores + self.bias[self.relative.view(-1)].view(area, area, self.heads).permute(2, 0, 1)
        if mask is not None:
            windows = mask.shape[0]
            scores = scores.view(count // windows, windows, self.heads, area, area) + mask[:, None]
            scores = scores.view(-1, self.heads, area, area)
        return self.output((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(count, area, width))


class SwinBlock(nn.Module):
    """Window attention, shifted by half a window in every second block, and a feed-forward."""

    mask: Tensor | None

    def __init__(self, width: int, size: int, window: int, heads: int, shift: int) -> None:
        super().__init__()
        self.window, self.shift = window, shift
        self.norm1, self.attention = nn.LayerNorm(width), WindowAttention(width, window, heads)
        self.norm2 = nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.register_buffer("mask", _shift_mask(size, window, shift) if shift else None)

    def forward(self, x: Tensor) -> Tensor:
        _, height, width, _ = x.shape
        y = self.norm1(x)
        if self.shift:
            y = torch.roll(y, shifts=(-self.shift, -self.shift), dims=(1, 2))
        y = unpartition(self.attention(partition(y, self.window), self.mask), self.window, height, width)
        if self.shift:
            y = torch.roll(y, shifts=(self.shift, self.shift), dims=(1, 2))
        x = x + y
        return x + self.feed_forward(self.norm2(x))


def _shift_mask(size: int, window: int, shift: int) -> Tensor:
    """-100 between pixels that only the roll made neighbours."""
    regions = torch.zeros(1, size, size, 1)
    slices = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
    for index, (rows, columns) in enumerate((rows, columns) for rows in slices for columns in slices):
        regions[:, rows, columns] = index
    regions = partition(regions, window).squeeze(-1)
    return (regions[:, None, :] - regions[:, :, None]).ne(0).float() * -100.0


class PatchMerging(nn.Module):
    """Each 2×2 neighbourhood becomes one position with twice the channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.reduce = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], dim=-1)
        return self.reduce(self.norm(x))


class Swin(nn.Module):
    """4×4 patches, stages of window attention with merging between, mean, linear."""

    def __init__(self, *, classes: int, size: int, window: int, width: int, plan: tuple[int, ...], heads: int) -> None:
        super().__init__()
        self.patches, self.norm0 = nn.Conv2d(3, width, 4, 4), nn.LayerNorm(width)
        grid, layers = size // 4, list[nn.Module]()
        for stage, count in enumerate(plan):
            if stage:
                layers.append(PatchMerging(width))
                grid, width, heads = grid // 2, 2 * width, 2 * heads
            shifts = [window // 2 if index % 2 and grid > window else 0 for index in range(count)]
            layers += [SwinBlock(width, grid, window, heads, shift) for shift in shifts]
        self.layers = nn.Sequential(*layers)
        self.norm, self.classifier = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layers(self.norm0(self.patches(x).permute(0, 2, 3, 1)))
        x = self.norm(x).flatten(1, 2).transpose(1, 2)
        return self.classifier(F.adaptive_avg_pool1d(x, 1).flatten(1))
