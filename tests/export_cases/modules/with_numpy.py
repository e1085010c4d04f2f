"""Masks, tables and places that forward makes with NumPy, of its sizes and of its tensors."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class SubsequentMask(nn.Module):
    """Attention that sees what came before, by a mask of NumPy's, as older code has it."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        shape = (1, x.size(1), x.size(1))
        mask = torch.from_numpy(np.triu(np.ones(shape), k=1).astype("uint8")) == 0
        scores = self.query(x) @ self.key(x).transpose(-2, -1) / np.sqrt(x.size(-1))
        return scores.masked_fill(mask == 0, -1e9).softmax(-1) @ self.value(x)


@case("x.0", "x.1")
def subsequent_mask():
    return SubsequentMask(), (randn(2, 7, 8),), (randn(1, 12, 8),), (randn(3, 1, 8),)


class TableOfSinusoids(nn.Module):
    """Positions as sines and cosines, in a table that is as long as the sequence."""

    def forward(self, x: Tensor) -> Tensor:
        places, axis = np.arange(x.shape[1])[:, np.newaxis], np.arange(x.shape[2])[np.newaxis, :]
        angles = places / np.power(10000, (2 * (axis // 2)) / np.float32(x.shape[2]))
        angles[:, 0::2], angles[:, 1::2] = np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])
        return x + torch.from_numpy(angles[np.newaxis]).to(x)


@case("x.0", "x.1")
def table_of_sinusoids():
    return TableOfSinusoids(), (randn(2, 7, 8),), (randn(1, 12, 8),)


class SegmentsOfFrames(nn.Module):
    """The mean of a fixed number of frames, evenly spaced, and no frame behind a row's own length."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        places = np.linspace(0, x.size(1) - 1, 4).round().astype(int)
        seen = np.arange(x.size(1))[None, :] < lengths.cpu().numpy()[:, None]
        return (x * torch.from_numpy(seen).unsqueeze(-1))[:, places].mean(1)


@case("x.0", "x.1", "lengths.0")
def segments_of_frames():
    return SegmentsOfFrames(), (randn(2, 9, 5), torch.tensor([9, 4])), (randn(3, 12, 5), torch.tensor([1, 12, 5]))


class PeriodsOfAnArray(nn.Module):
    """A series folded by its strongest periods, which NumPy holds, and padded where one does not divide its length."""

    def __init__(self, width: int = 4, top: int = 2) -> None:
        super().__init__()
        self.top, self.conv = top, nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        b, t, n = x.shape
        spectrum = torch.fft.rfft(x, dim=1).abs()
        strength = spectrum.mean(0).mean(-1)
        strength[0] = 0
        places = torch.topk(strength, self.top)[1].detach().cpu().numpy()
        periods, weights = x.shape[1] // places, spectrum.mean(-1)[:, places]
        results = []
        for i in range(self.top):
            period = periods[i]
            if t % period != 0:
                length = ((t // period) + 1) * period
                padding = torch.zeros([b, (length - t), n]).to(x.device)
                out = torch.cat([x, padding], dim=1)
            else:
                length = t
                out = x
            out = out.reshape(b, length // period, period, n).permute(0, 3, 1, 2).contiguous()
            out = self.conv(out).permute(0, 2, 3, 1).reshape(b, -1, n)
            results.append(out[:, :t, :])
        weights = torch.softmax(weights, dim=1).unsqueeze(1).unsqueeze(1).repeat(1, t, n, 1)
        return (torch.stack(results, dim=-1) * weights).sum(-1) + x


@case("x.0")
def periods_of_an_array():
    return PeriodsOfAnArray(), (randn(2, 12, 4),), (randn(3, 17, 4),), (randn(1, 15, 4),)
