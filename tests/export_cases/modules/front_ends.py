"""What turns a waveform into features: learned filters, smoothed energies, cepstra, pitch, decisions with memory."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randn

from tests.export_cases.case import case


class BandPassFilters(nn.Module):
    """A convolution whose kernels are band-pass filters made from two frequencies each."""

    def __init__(self, channels: int = 6, width: int = 31) -> None:
        super().__init__()
        self.width = width
        self.low = nn.Parameter(torch.linspace(0.02, 0.3, channels)[:, None])
        self.band = nn.Parameter(torch.full((channels, 1), 0.05))
        half = torch.arange(1, width // 2 + 1).float()
        self.register_buffer("steps", half[None])
        self.register_buffer("window", 0.54 - 0.46 * torch.cos(2 * math.pi * torch.arange(width // 2) / width))

    def forward(self, wave: Tensor) -> Tensor:
        low = self.low.abs()
        high = torch.clamp(low + self.band.abs(), max=0.5)
        left = (torch.sin(high * self.steps * 2) - torch.sin(low * self.steps * 2)) / (self.steps / 2) * self.window
        kernel = torch.cat([left.flip(1), 2 * (high - low), left], dim=1)
        kernel = (kernel / (2 * (high - low))).view(-1, 1, self.width)
        return F.conv1d(wave.unsqueeze(1), kernel, stride=4, padding=self.width // 2)


@case("wave.0", "wave.1")
def learned_band_pass_filters():
    return BandPassFilters(), (randn(2, 160),), (randn(1, 243),), (randn(3, 96),)


class ChannelEnergies(nn.Module):
    """Energies divided by their exponential average, frame by frame."""

    def __init__(self, bands: int = 5) -> None:
        super().__init__()
        self.s = nn.Parameter(torch.full((bands,), 0.1))
        self.alpha, self.delta = nn.Parameter(torch.full((bands,), 0.9)), nn.Parameter(torch.full((bands,), 2.0))
        self.r = nn.Parameter(torch.full((bands,), 0.5))

    def forward(self, energy: Tensor) -> Tensor:
        smooth = []
        last = None
        for frame in energy.unbind(dim=1):
            last = frame if last is None else (1 - self.s) * last + self.s * frame
            smooth.append(last)
        m = torch.stack(smooth, dim=1)
        root = 1 / self.r
        return (energy / (1e-6 + m) ** self.alpha + self.delta) ** root - self.delta**root


@case("energy.0", "energy.1")
def energies_over_their_average():
    return ChannelEnergies(), (rand(2, 9, 5),), (rand(1, 14, 5),), (rand(3, 6, 5),)


class Cepstra(nn.Module):
    """Cepstral coefficients with their first and second differences, normalised over the utterance."""

    def __init__(self, bands: int = 12, kept: int = 5) -> None:
        super().__init__()
        n = torch.arange(bands).float()
        table = torch.cos(math.pi / bands * (n + 0.5) * torch.arange(kept).float()[:, None]) * math.sqrt(2 / bands)
        self.register_buffer("table", table.t())

    def delta(self, x: Tensor, n: int = 2) -> Tensor:
        padded = F.pad(x.transpose(1, 2), (n, n), mode="replicate")
        total = sum(i * (padded[:, :, n + i : padded.shape[2] - n + i] - padded[:, :, n - i : -n - i]) for i in (1, 2))
        return total.transpose(1, 2) / 10 if n else x

    def forward(self, mel: Tensor, lengths: Tensor) -> Tensor:
        static = torch.log(mel + 1e-6) @ self.table
        padded = static.transpose(1, 2)
        first = (
            F.pad(padded, (1, 1), mode="replicate")[..., 2:] - F.pad(padded, (1, 1), mode="replicate")[..., :-2]
        ) / 2
        second = torch.diff(F.pad(first, (1, 0), mode="replicate"), dim=-1)
        x = torch.cat([static, first.transpose(1, 2), second.transpose(1, 2)], -1)
        mask = (torch.arange(x.size(1))[None] < lengths[:, None]).unsqueeze(-1)
        count = mask.sum(1, keepdim=True).clamp_min(1)
        mean = (x * mask).sum(1, keepdim=True) / count
        std = (((x - mean) * mask).pow(2).sum(1, keepdim=True) / count).sqrt()
        return ((x - mean) / (std + 1e-5)).masked_fill(~mask, 0.0)


@case("mel.0", "mel.1")
def cepstra_with_their_differences():
    return (
        Cepstra(),
        (rand(2, 11, 12), torch.tensor([11, 7])),
        (rand(3, 8, 12), torch.tensor([5, 8, 2])),
        (rand(1, 20, 12), torch.tensor([20])),
    )


class Pitch(nn.Module):
    """The lag at which frames agree most with themselves, and how much."""

    def __init__(self, frame: int = 64, hop: int = 32, low: int = 4, high: int = 24) -> None:
        super().__init__()
        self.frame, self.hop, self.low, self.high = frame, hop, low, high

    def forward(self, wave: Tensor) -> tuple[Tensor, Tensor]:
        wave = F.pad(wave, (0, max(0, self.frame - wave.shape[-1])))
        frames = wave.unfold(-1, self.frame, self.hop)
        frames = frames - frames.mean(-1, keepdim=True)
        curves = []
        for lag in range(self.low, self.high):
            a, b = frames[..., :-lag], frames[..., lag:]
            curves.append((a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1) + 1e-6))
        curve = torch.stack(curves, -1)
        best, at = curve.max(-1)
        return 16000.0 / (at + self.low), best


@case("wave.0", "wave.1")
def pitch_by_lags():
    return Pitch(), (randn(2, 256),), (randn(1, 400),), (randn(3, 130),)


class Hangover(nn.Module):
    """Speech begins at once and ends after some quiet frames."""

    def __init__(self, hold: int = 3) -> None:
        super().__init__()
        self.hold = hold
        self.net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        p = self.net(x).squeeze(-1).sigmoid()
        active = torch.zeros(x.shape[0], dtype=torch.long)
        out = torch.zeros_like(p, dtype=torch.bool)
        for t in range(p.shape[1]):
            loud = p[:, t] > 0.5
            active = torch.where(loud, torch.full_like(active, self.hold), (active - 1).clamp(min=0))
            out[:, t] = active > 0
        return p, out


@case("x.0", "x.1")
def speech_with_hangover():
    return Hangover(), (randn(2, 12, 6),), (randn(1, 7, 6),), (randn(4, 17, 6),)


class FeatureExtractor(nn.Module):
    """Convolutions over raw sound; the mask is made from the lengths that come out of them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        channels = 1
        for kernel, stride in ((10, 5), (3, 2), (3, 2)):
            self.layers.append(nn.Sequential(nn.Conv1d(channels, 8, kernel, stride), nn.GroupNorm(2, 8), nn.GELU()))
            channels = 8
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)

    def out_lengths(self, lengths: Tensor) -> Tensor:
        for layer in self.layers:
            conv = layer[0]
            lengths = torch.div(lengths - conv.kernel_size[0], conv.stride[0], rounding_mode="floor") + 1
        return lengths

    def forward(self, wave: Tensor, lengths: Tensor) -> dict[str, Tensor]:
        x = wave.unsqueeze(1)
        for layer in self.layers:
            x = layer(x)
        x = x.transpose(1, 2)
        lengths = self.out_lengths(lengths)
        mask = torch.zeros(x.shape[:2], dtype=x.dtype)
        mask[(torch.arange(mask.shape[0]), lengths - 1)] = 1
        mask = mask.flip([-1]).cumsum(-1).flip([-1]).bool()
        x = self.encoder(x.masked_fill(~mask.unsqueeze(-1), 0), src_key_padding_mask=~mask)
        return {"hidden": x * mask.unsqueeze(-1), "lengths": lengths}


@case("wave.0", "wave.1")
def raw_sound_with_lengths():
    return (
        FeatureExtractor(),
        (randn(2, 200), torch.tensor([200, 150])),
        (randn(3, 160), torch.tensor([160, 90, 130])),
        (randn(1, 321), torch.tensor([300])),
    )
