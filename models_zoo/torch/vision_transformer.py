from __future__ import annotations

import torch
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built


def vit(
    *, classes: int = 10, size: int = 32, patch: int = 8, width: int = 48, layers: int = 2, heads: int = 4
) -> Built:
    """ViT (Dosovitskiy et al., 2020); ``size=224, patch=16, width=768, layers=12, heads=12, classes=1000`` is B/16."""
    return _built(
        VisionTransformer(classes=classes, size=size, patch=patch, width=width, layers=layers, heads=heads), size
    )


def mlp_mixer(*, classes: int = 10, size: int = 32, patch: int = 8, width: int = 48, layers: int = 2) -> Built:
    """MLP-Mixer (Tolstikhin et al., 2021)."""
    return _built(MLPMixer(classes, size, patch, width, layers), size)


def _built(module: nn.Module, size: int) -> Built:
    return Built(module, ((torch.randn(1, 3, size, size),), (torch.randn(4, 3, size, size),)), frozenset({"x.0"}))


class VisionTransformer(nn.Module):
    """PyTorch's own encoder layers over embedded patches and a class token."""

    def __init__(self, *, classes: int, size: int, patch: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.class_token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, activation="gelu", batch_first=True, norm_first=True, dropout=0.1
        )
        self.encoder = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.classifier = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1) + self.positions
        return self.classifier(self.encoder(x)[:, 0])


class MixerBlock(nn.Module):
    """A perceptron over patches, then one over channels."""

    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.over_patches = nn.Sequential(nn.Linear(patches, 2 * patches), nn.GELU(), nn.Linear(2 * patches, patches))
        self.over_channels = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.over_patches(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.over_channels(self.norm2(x))


class MLPMixer(nn.Module):
    """Patches, mixer blocks, mean, linear."""

    def __init__(self, classes: int, size: int, patch: int, width: int, layers: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, patch, patch)
        self.blocks = nn.Sequential(*(MixerBlock((size // patch) ** 2, width) for _ in range(layers)))
        self.norm, self.classifier = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.stem(x).flatten(2).mT)
        return self.classifier(self.norm(x).mean(dim=1))
