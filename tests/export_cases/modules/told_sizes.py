"""Sizes that go through Python on their way: lists of levels, remembered grids, half spectra, sizes to return to."""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randn

from tests.export_cases.case import case


class Levels(nn.Module):
    """Maps of several levels as one row of tokens, with their shapes, beginnings and places."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nn.Conv2d(4, 6, 3, padding=1) for _ in range(3))

    def forward(self, maps: list[Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        tokens, shapes, begins, places = [], [], [0], []
        for each, net in zip(maps, self.nets, strict=True):
            y = net(each)
            h, w = y.shape[-2:]
            shapes.append((h, w))
            begins.append(begins[-1] + h * w)
            tokens.append(y.flatten(2).transpose(1, 2))
            rows, columns = torch.linspace(0.5, h - 0.5, h) / h, torch.linspace(0.5, w - 0.5, w) / w
            places.append(torch.stack(torch.meshgrid(rows, columns, indexing="ij"), -1).reshape(-1, 2))
        starts = torch.tensor(begins[:-1])
        return torch.cat(tokens, 1), torch.as_tensor(shapes, dtype=torch.long), starts, torch.cat(places)


def _levels(batch: int, *sizes: tuple[int, int]) -> tuple[list[Tensor]]:
    return ([randn(batch, 4, *size) for size in sizes],)


@case("maps.0.0", "maps.0.2", "maps.2.3")
def levels_with_their_shapes():
    first, second = _levels(1, (8, 6), (4, 3), (2, 2)), _levels(2, (9, 7), (5, 4), (3, 2))
    return Levels(), first, second, _levels(1, (12, 12), (6, 6), (3, 3))


class FourierConvolution(nn.Module):
    """Both parts of a spectrum are mixed as channels."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Conv2d(8, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        b, _, h, w = x.shape
        spectrum = torch.fft.rfft2(x, norm="ortho")
        parts = torch.stack((spectrum.real, spectrum.imag), -1).permute(0, 1, 4, 2, 3).reshape(b, -1, h, w // 2 + 1)
        parts = F.relu(self.net(parts)).view(b, -1, 2, h, w // 2 + 1).permute(0, 1, 3, 4, 2)
        return torch.fft.irfft2(torch.complex(parts[..., 0], parts[..., 1]), s=(h, w), norm="ortho")


@case("x.0", "x.2", "x.3")
def convolution_of_a_spectrum():
    return FourierConvolution(), (randn(1, 4, 8, 9),), (randn(2, 4, 7, 6),), (randn(1, 4, 5, 12),)


@functools.lru_cache(maxsize=8)
def _grid(height: int, width: int) -> Tensor:
    rows, columns = torch.meshgrid(torch.linspace(-1, 1, height), torch.linspace(-1, 1, width), indexing="ij")
    return torch.stack((columns, rows), -1)


class Warped(nn.Module):
    """One image is moved onto another; the grid of each size is remembered."""

    def __init__(self) -> None:
        super().__init__()
        self.flow = nn.Conv2d(6, 2, 3, padding=1)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        h, w = a.shape[-2:]
        x, y = self.flow(torch.cat((a, b), 1)).unbind(1)
        grid = _grid(h, w) + torch.stack((2 * x / max(w - 1, 1), 2 * y / max(h - 1, 1)), -1)
        return F.grid_sample(b, grid, align_corners=True, padding_mode="border")


def _pair(batch: int, height: int, width: int) -> tuple[Tensor, Tensor]:
    return rand(batch, 3, height, width), rand(batch, 3, height, width)


@case("a.0", "a.2", "a.3")
def moved_by_a_remembered_grid():
    return Warped(), _pair(1, 8, 10), _pair(2, 7, 5), _pair(3, 12, 12)


class Back(nn.Module):
    """Down and up again, to the size that it had."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(1, 4, 3, 2, 1), nn.ConvTranspose2d(4, 1, 3, 2, 1)
        self.pool, self.unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.down(x)
        best, at = self.pool(y)
        return self.up(self.unpool(best, at, output_size=y.size()) + y, output_size=x.size())


@case("x.0", "x.2", "x.3")
def back_to_the_size_before():
    return Back(), (randn(1, 1, 9, 12),), (randn(2, 1, 8, 8),), (randn(1, 1, 13, 7),)


class SplitByLengths(nn.Module):
    """Rows of several sets after one another, padded, and the mean of each."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 4)

    def forward(self, rows: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        parts = torch.split(self.net(rows), lengths.tolist())
        return nn.utils.rnn.pad_sequence(parts, batch_first=True), torch.stack([part.mean(0) for part in parts])


def _sets(*lengths: int) -> tuple[Tensor, Tensor]:
    return randn(sum(lengths), 3), torch.tensor(lengths)


@case("rows.0", "lengths.0")
def sets_padded_and_averaged():
    return SplitByLengths(), _sets(3, 4, 2), _sets(1, 6), _sets(2, 2, 5, 1)
