"""Pieces of an axis whose lengths Python computes: splits with a rest, lists of sizes, chunks, strides."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class ChunkedFeedForward(nn.Module):
    """Feed forward in pieces of a fixed length, to save memory."""

    def __init__(self, width: int = 4, piece: int = 4) -> None:
        super().__init__()
        self.piece = piece
        self.net = nn.Sequential(nn.Linear(width, 8), nn.GELU(), nn.Linear(8, width))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.net(part) for part in torch.split(x, self.piece, dim=1)], dim=1)


@case("x.0", "x.1")
def feed_forward_in_pieces():
    return ChunkedFeedForward(), (randn(2, 10, 4),), (randn(3, 7, 4),), (randn(1, 12, 4),)


class ChunkStatistics(nn.Module):
    """The mean of each piece; the last piece is shorter."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([piece.mean(dim=1) for piece in x.split(3, dim=1)], dim=1)


@case("x.0", "x.1")
def means_of_pieces_with_a_rest():
    return ChunkStatistics(), (randn(2, 8, 4),), (randn(3, 13, 4),), (randn(2, 9, 4),)


class Fractions(nn.Module):
    """Three parts of a sequence by fractions of its length."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        sizes = [int(n * f) for f in (0.25, 0.5)]
        sizes.append(n - sum(sizes))
        parts = x.split(sizes, dim=1)
        return torch.cat([net(part) for net, part in zip(self.nets, parts, strict=True)], dim=1)


@case("x.0", "x.1")
def parts_by_fractions():
    return Fractions(), (randn(2, 10, 4),), (randn(3, 17, 4),)


class Chunk(nn.Module):
    """Four chunks of whatever length."""

    def forward(self, x: Tensor) -> Tensor:
        chunks = x.chunk(4, dim=1)
        return torch.stack([chunk.amax(dim=1) for chunk in chunks], dim=1)


@case("x.0", "x.1")
def four_chunks_of_any_length():
    return Chunk(), (randn(2, 12, 3),), (randn(3, 15, 3),), (randn(2, 8, 3),)


class Ragged(nn.Module):
    """Sentences of a flat batch, padded to the longest."""

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        parts = torch.split(tokens, lengths.tolist())
        return nn.utils.rnn.pad_sequence(list(parts), batch_first=True)


@case("tokens.0", "lengths.0")
def padded_from_flat():
    return Ragged(), (randn(7, 3), torch.tensor([3, 4])), (randn(9, 3), torch.tensor([2, 4, 3]))


class LengthsLoop(nn.Module):
    """Python walks over the lengths of a packed batch and keeps an offset."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(3, 1)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        start, pooled = 0, []
        for length in lengths.tolist():
            part = x[start : start + length]
            weight = self.score(part).softmax(0)
            pooled.append((weight * part).sum(0))
            start += length
        return torch.stack(pooled)


@case("x.0", "lengths.0")
def attention_pooling_of_parts():
    return LengthsLoop(), (randn(7, 3), torch.tensor([3, 4])), (randn(11, 3), torch.tensor([2, 5, 4]))


class OverlapAdd(nn.Module):
    """Frames with a hop, filtered and added up again."""

    def __init__(self, frame: int = 8, hop: int = 4) -> None:
        super().__init__()
        self.frame, self.hop = frame, hop
        self.register_buffer("window", torch.hann_window(frame))
        self.net = nn.Linear(frame, frame)

    def forward(self, wave: Tensor) -> Tensor:
        length = wave.shape[-1]
        rest = (self.hop - (length - self.frame) % self.hop) % self.hop
        wave = F.pad(wave, (0, rest))
        frames = self.net(wave.unfold(-1, self.frame, self.hop) * self.window)
        total = wave.shape[-1]
        out = F.fold(frames.transpose(1, 2), (1, total), (1, self.frame), stride=(1, self.hop))
        return out[:, 0, 0, :length]


@case("wave.0", "wave.1")
def frames_overlapped_and_added():
    return OverlapAdd(), (randn(2, 32),), (randn(3, 45),), (randn(1, 20),)


class Segments(nn.Module):
    """Speaker embeddings of half-overlapping segments, averaged."""

    def __init__(self, size: int = 8) -> None:
        super().__init__()
        self.size, self.net = size, nn.GRU(3, 5, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        step = self.size // 2
        found = []
        for start in range(0, x.shape[1] - self.size + 1, step):
            _, h = self.net(x[:, start : start + self.size])
            found.append(F.normalize(h[-1], dim=-1))
        return torch.stack(found).mean(0)


@case("x.0", "x.1")
def half_overlapping_segments():
    return Segments(), (randn(2, 20, 3),), (randn(1, 29, 3),)


class DualPath(nn.Module):
    """A dual-path separator: chunks of 50 % overlap, along and across."""

    def __init__(self, size: int = 6, width: int = 4) -> None:
        super().__init__()
        self.size = size
        self.along = nn.LSTM(width, width, batch_first=True)
        self.across = nn.LSTM(width, width, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        b, n, length = x.shape
        hop = self.size // 2
        gap = self.size - (hop + length % self.size) % self.size
        x = F.pad(x, (0, gap))
        x = F.pad(x, (hop, hop))
        first = x[:, :, :-hop].contiguous().view(b, n, -1, self.size)
        second = x[:, :, hop:].contiguous().view(b, n, -1, self.size)
        chunks = torch.cat([first, second], dim=3).view(b, n, -1, self.size).transpose(2, 3)
        k, s = chunks.shape[2:]
        y = chunks.permute(0, 3, 2, 1).reshape(b * s, k, n)
        y = self.along(y)[0].view(b, s, k, n)
        z = y.permute(0, 2, 1, 3).reshape(b * k, s, n)
        z = self.across(z)[0].view(b, k, s, n)
        return z.mean(dim=(1, 2))


@case("x.0", "x.2")
def dual_path_separation():
    return DualPath(), (randn(2, 4, 20),), (randn(1, 4, 31),)


class Downsample(nn.Module):
    """Frames stacked in groups of three; the rest is dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(12, 5)

    def forward(self, x: Tensor) -> Tensor:
        b, t, f = x.shape
        if t % 3 != 0:
            x = x[:, : t - t % 3, :]
        return self.net(x.reshape(b, t // 3, f * 3))


@case("x.0", "x.1")
def stacked_frames():
    return Downsample(), (randn(2, 10, 4),), (randn(3, 15, 4),), (randn(1, 8, 4),)


class Interpolated(nn.Module):
    """A table of positions resized to the sequence."""

    def __init__(self, most: int = 8, width: int = 4) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, most, width))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        table = self.table
        if n != table.shape[1]:
            table = F.interpolate(table.transpose(1, 2), size=n, mode="linear", align_corners=False).transpose(1, 2)
        return x + table


@case("x.0", "x.1")
def positions_resized_to_the_length():
    return Interpolated(), (randn(2, 8, 4),), (randn(3, 13, 4),), (randn(1, 5, 4),)


class SpatialPyramid(nn.Module):
    """SPP: windows and strides from the size, by ceil and floor."""

    def forward(self, x: Tensor) -> Tensor:
        n, _, h, w = x.shape
        found = []
        for level in (1, 2, 3):
            kh, kw = math.ceil(h / level), math.ceil(w / level)
            sh, sw = math.floor(h / level), math.floor(w / level)
            found.append(F.max_pool2d(x, (kh, kw), stride=(sh, sw))[:, :, :level, :level].reshape(n, -1))
        return torch.cat(found, 1)


@case("x.0", "x.2", "x.3")
def spatial_pyramid_pooling():
    return SpatialPyramid(), (randn(2, 3, 12, 11),), (randn(1, 3, 9, 14),)


class Buckets(nn.Module):
    """Patches of a series from the right, so that the last one is full."""

    def __init__(self, patch: int = 4) -> None:
        super().__init__()
        self.patch, self.net = patch, nn.Linear(patch, 3)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[-1] // self.patch
        return self.net(x[..., -n * self.patch :].reshape(*x.shape[:-1], n, self.patch))


@case("x.0", "x.1")
def patches_from_the_right():
    return Buckets(), (randn(2, 13),), (randn(3, 22),), (randn(1, 8),)


class Adaptive(nn.Module):
    """Channels pooled by a size of half the input."""

    def forward(self, x: Tensor) -> Tensor:
        h, w = x.shape[-2:]
        low = F.adaptive_avg_pool2d(x, (h // 2, w // 2))
        return F.interpolate(low, size=(h, w), mode="nearest") - x


@case("x.0", "x.2", "x.3")
def adaptive_pool_to_half():
    return Adaptive(), (randn(2, 3, 8, 12),), (randn(1, 3, 10, 6),), (randn(1, 3, 7, 9),)


class Halving(nn.Module):
    """Pairs are merged until one is left; an odd one waits."""

    def __init__(self) -> None:
        super().__init__()
        self.merge = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        while x.shape[1] > 1:
            odd = x[:, -1:] if x.shape[1] % 2 else x[:, :0]
            even = x[:, : x.shape[1] // 2 * 2]
            x = torch.cat([torch.tanh(self.merge(torch.cat([even[:, ::2], even[:, 1::2]], -1))), odd], 1)
        return x[:, 0]


@case("x.0", "x.1")
def pairs_merged_until_one_is_left():
    return Halving(), (randn(2, 6, 4),), (randn(3, 11, 4),)
