from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built


def wavenet(*, width: int = 16, levels: int = 32, layers: int = 5, length: int = 64) -> Built:
    """WaveNet (van den Oord et al., 2016): logits over quantised amplitudes for every sample."""
    samples = ((torch.randn(1, 1, length),), (torch.randn(2, 1, length + 21),))
    return Built(WaveNet(width, levels, layers), samples, frozenset({"audio.0", "audio.2"}))


class CausalConv(nn.Conv1d):
    """A convolution that is padded on the left only."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(F.pad(x, (self.dilation[0] * (self.kernel_size[0] - 1), 0)))


class GatedBlock(nn.Module):
    """tanh times sigmoid of a dilated convolution; one part goes on, one part is summed."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.conv = CausalConv(width, 2 * width, 2, dilation=dilation)
        self.residual, self.skip = nn.Conv1d(width, width, 1), nn.Conv1d(width, width, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        value, gate = self.conv(x).chunk(2, dim=1)
        y = torch.tanh(value) * torch.sigmoid(gate)
        return x + self.residual(y), self.skip(y)


class WaveNet(nn.Module):
    """Dilations 1, 2, 4, ...; the sum of all skips is classified."""

    def __init__(self, width: int, levels: int, layers: int) -> None:
        super().__init__()
        self.stem = CausalConv(1, width, 2)
        self.blocks = nn.ModuleList(GatedBlock(width, 2**index) for index in range(layers))
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(), nn.Conv1d(width, levels, 1))

    def forward(self, audio: Tensor) -> Tensor:
        x, total = self.stem(audio), torch.zeros(())
        for block in self.blocks:
            x, skip = block(x)
            total = total + skip
        return self.head(total)
