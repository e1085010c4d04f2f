"""Signals: spectrograms, filters, peaks, overlapping windows, states that are estimated."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randn

from tests.export_cases.case import case


class Spectrogram(nn.Module):
    """A mel spectrogram in decibels, normalised, below the top by no more than eighty."""

    def __init__(self, n: int = 32, hop: int = 8, mels: int = 6) -> None:
        super().__init__()
        self.n, self.hop = n, hop
        self.register_buffer("window", torch.hann_window(n))
        self.register_buffer("mel", rand(mels, n // 2 + 1))

    def forward(self, wave: Tensor) -> Tensor:
        wave = torch.cat([wave[:, :1], wave[:, 1:] - 0.97 * wave[:, :-1]], 1)
        s = torch.stft(wave, self.n, self.hop, window=self.window, center=True, pad_mode="reflect", return_complex=True)
        power = s.real**2 + s.imag**2
        db = 10 * torch.log10((self.mel @ power).clamp_min(1e-10))
        db = torch.maximum(db, db.amax((-2, -1), keepdim=True) - 80)
        mean, std = db.mean(-1, keepdim=True), db.std(-1, keepdim=True)
        return (db - mean) / (std + 1e-5)


@case("wave.0", "wave.1")
def mel_spectrogram():
    return Spectrogram(), (randn(2, 96),), (randn(1, 130),), (randn(3, 75),)


class Filter(nn.Module):
    """A biquad filter, sample by sample, then its envelope."""

    def __init__(self) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.tensor([0.2, 0.3, 0.1]))
        self.a = nn.Parameter(torch.tensor([-0.4, 0.1]))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x1 = x2 = y1 = y2 = torch.zeros_like(x[:, 0])
        out = torch.empty_like(x)
        for n in range(x.size(1)):
            y = self.b[0] * x[:, n] + self.b[1] * x1 + self.b[2] * x2 - self.a[0] * y1 - self.a[1] * y2
            x2, x1 = x1, x[:, n]
            y2, y1 = y1, y
            out[:, n] = y
        envelope = F.max_pool1d(out.abs().unsqueeze(1), 5, stride=1, padding=2).squeeze(1)
        return out, envelope


@case("x.0", "x.1")
def filter_by_sample():
    return Filter(), (randn(2, 12),), (randn(1, 20),), (randn(3, 7),)


class Peaks(nn.Module):
    """Where a signal peaks above its surroundings, and how many peaks lie before each sample."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        around = F.max_pool1d(x[:, None], 5, 1, 2)[:, 0]
        level = F.avg_pool1d(x[:, None], 9, 1, 4, count_include_pad=False)[:, 0]
        peak = (x == around) & (x > level + 0.5)
        before = peak.int().cumsum(1)
        where = torch.arange(x.size(1)).expand_as(x)
        last = torch.where(peak, where, -1).cummax(1).values
        return peak, before, where - last


@case("x.0", "x.1")
def peaks_of_a_signal():
    return Peaks(), (randn(2, 30),), (randn(1, 17),), (randn(4, 51),)


class Windows(nn.Module):
    """Attention within overlapping windows of a row that is padded to whole strides."""

    def __init__(self, width: int = 8, window: int = 6, stride: int = 3) -> None:
        super().__init__()
        self.window, self.stride = window, stride
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        extra = (self.stride - (t - self.window) % self.stride) % self.stride if t > self.window else self.window - t
        q, k, v = self.qkv(F.pad(x, (0, 0, 0, extra))).chunk(3, -1)
        q, k, v = (y.unfold(1, self.window, self.stride).transpose(2, 3) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v)
        n = t + extra
        places = torch.arange(n).unfold(0, self.window, self.stride).reshape(-1)
        summed = torch.zeros(b, n, d).index_add(1, places, y.flatten(1, 2))
        counts = torch.zeros(n).index_add(0, places, torch.ones(places.shape))
        return self.out((summed / counts[None, :, None])[:, :t])


@case("x.0", "x.1")
def overlapping_windows():
    return Windows(), (randn(2, 14, 8),), (randn(1, 9, 8),), (randn(3, 21, 8),)


class Kalman(nn.Module):
    """A linear filter over a row of measurements, some of which are missing."""

    def __init__(self) -> None:
        super().__init__()
        self.f = nn.Parameter(torch.tensor([[1.0, 0.1], [0.0, 0.95]]))
        self.h = nn.Parameter(torch.tensor([[1.0, 0.0]]))
        self.q, self.r = nn.Parameter(0.01 * torch.eye(2)), nn.Parameter(torch.tensor([[0.1]]))

    def forward(self, z: Tensor) -> Tensor:
        x = torch.zeros(z.size(0), 2, 1)
        p = torch.eye(2).repeat(z.size(0), 1, 1)
        states = []
        for m in z.unbind(1):
            x, p = self.f @ x, self.f @ p @ self.f.T + self.q
            s = self.h @ p @ self.h.T + self.r
            k = torch.linalg.solve(s, self.h @ p).mT
            seen = ~torch.isnan(m)
            y = torch.where(seen, m, 0.0).view(-1, 1, 1) - self.h @ x * seen.view(-1, 1, 1)
            k = k * seen.view(-1, 1, 1)
            x = x + k @ y
            p = (torch.eye(2) - k @ self.h) @ p
            states.append(x.squeeze(-1))
        return torch.stack(states, 1)


@case("z.0", "z.1")
def kalman_filter():
    z = randn(2, 7)
    z[0, 3] = float("nan")
    return Kalman(), (z,), (randn(1, 4),), (randn(3, 11),)
