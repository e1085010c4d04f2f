from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built


def dcgan_generator(*, noise: int = 32, width: int = 16, channels: int = 3) -> Built:
    """DCGAN's generator (Radford et al., 2015), noise to a 32×32 image."""
    samples = ((torch.randn(1, noise),), (torch.randn(5, noise),))
    return Built(Generator(noise, width, channels), samples, frozenset({"z.0"}))


def autoencoder(*, channels: int = 1, size: int = 28, width: int = 8) -> Built:
    """Convolutional autoencoder; the decoder doubles by bilinear interpolation and a convolution."""
    samples = ((torch.rand(1, channels, size, size),), (torch.rand(4, channels, size, size),))
    return Built(Autoencoder(channels, width), samples, frozenset({"image.0", "image.2", "image.3"}))


class Generator(nn.Module):
    """Transposed convolutions that double the image three times."""

    def __init__(self, noise: int, width: int, channels: int) -> None:
        super().__init__()
        plan = [(noise, 4 * width, 1, 0), (4 * width, 2 * width, 2, 1), (2 * width, width, 2, 1)]
        layers: list[nn.Module] = []
        for inputs, outputs, stride, padding in plan:
            layers.append(nn.ConvTranspose2d(inputs, outputs, 4, stride, padding, bias=False))
            layers += [nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
        layers += [nn.ConvTranspose2d(width, channels, 4, 2, 1), nn.Tanh()]
        self.layers = nn.Sequential(*layers)

    def forward(self, z: Tensor) -> Tensor:
        return self.layers(z[:, :, None, None])


class Autoencoder(nn.Module):
    """Returns the reconstruction and the code."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.down1 = nn.Conv2d(channels, width, 3, stride=2, padding=1)
        self.down2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.up1 = nn.Conv2d(2 * width, width, 3, padding=1, padding_mode="replicate")
        self.up2 = nn.Conv2d(width, channels, 3, padding=1, padding_mode="reflect")

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        code = F.leaky_relu(self.down2(F.elu(self.down1(image))), 0.1)
        y = F.interpolate(code, scale_factor=2, mode="bilinear", align_corners=False)
        y = F.elu(self.up1(y))
        y = F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)
        return torch.sigmoid(self.up2(y)), code
