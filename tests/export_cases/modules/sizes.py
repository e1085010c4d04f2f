"""Sizes that Python computes: padding to windows, grids, adaptive pools, position interpolation, chunks."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class WindowAttention(nn.Module):
    """Swin's windows, padded to a multiple of the window and cropped back."""

    def __init__(self, width: int = 8, window: int = 4) -> None:
        super().__init__()
        self.window, self.qkv = window, nn.Linear(width, 3 * width)

    def forward(self, x: Tensor) -> Tensor:
        batch, h, w, c = x.shape
        pad_b, pad_r = (self.window - h % self.window) % self.window, (self.window - w % self.window) % self.window
        if pad_b > 0 or pad_r > 0:
            x = F.pad(x, (0, 0, 0, pad_r, 0, pad_b))
        hp, wp = h + pad_b, w + pad_r
        n = self.window
        x = x.view(batch, hp // n, n, wp // n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, n * n, c)
        q, k, v = self.qkv(x).chunk(3, -1)
        x = F.scaled_dot_product_attention(q, k, v)
        x = x.view(batch, hp // n, wp // n, n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(batch, hp, wp, c)
        return x[:, :h, :w]


@case("x.0", "x.1", "x.2")
def window_attention_with_padding():
    return WindowAttention(), (randn(2, 9, 10, 8),), (randn(1, 14, 7, 8),), (randn(1, 8, 12, 8),)


class Vit(nn.Module):
    """A vision transformer whose position embeddings are interpolated to the image."""

    def __init__(self, width: int = 8, grid: int = 4) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4, 4)
        self.positions = nn.Parameter(torch.randn(1, width, grid, grid))
        self.block, self.grid = nn.TransformerEncoderLayer(width, 2, 16, batch_first=True), grid

    def forward(self, image: Tensor) -> Tensor:
        x = self.patch(image)
        h, w = x.shape[-2:]
        pos = self.positions
        if (h, w) != (self.grid, self.grid):
            pos = F.interpolate(pos, size=(h, w), mode="bicubic", align_corners=False)
        return self.block((x + pos).flatten(2).transpose(1, 2)).mean(1)


@case("image.0", "image.2", "image.3")
def vit_with_interpolated_positions():
    return Vit(), (randn(2, 3, 16, 16),), (randn(1, 3, 24, 20),)


class PatchesInATable(nn.Module):
    """A vision transformer whose table of position embeddings ends with the picture of its sample."""

    def __init__(self, width: int = 8, patches: int = 16) -> None:
        super().__init__()
        self.patch, self.token = nn.Linear(48, width), nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, patches + 1, width))
        self.block = nn.TransformerEncoderLayer(width, 2, 16, batch_first=True)

    def forward(self, image: Tensor) -> Tensor:
        b, _, h, w = image.shape
        if h % 4 or w % 4:
            raise ValueError("whole patches")
        patches = image.view(b, 3, h // 4, 4, w // 4, 4).permute(0, 2, 4, 3, 5, 1).reshape(b, -1, 48)
        x = torch.cat([self.token.expand(b, -1, -1), self.patch(patches)], 1)
        return self.block(x + self.positions[:, : x.shape[1]])[:, 0]


@case("image.0", "image.2", "image.3")
def smaller_pictures_than_the_table_is_for():
    return PatchesInATable(), (randn(2, 3, 16, 16),), (randn(3, 3, 16, 8),), (randn(1, 3, 4, 12),)


class Chunked(nn.Module):
    """Work in chunks of a fixed length; the last one is shorter."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.net(part) * (i + 1) for i, part in enumerate(x.split(3, dim=1))], dim=1)


@case("x.0", "x.1")
def chunks_of_a_fixed_length():
    return Chunked(), (randn(2, 7, 4),), (randn(3, 10, 4),), (randn(1, 2, 4),)


class Halves(nn.Module):
    """Two halves of an axis, interleaved."""

    def forward(self, x: Tensor) -> Tensor:
        half = x.shape[1] // 2
        left, right = x[:, :half], x[:, half : 2 * half]
        return torch.stack([left, right], 2).flatten(1, 2)


@case("x.0", "x.1")
def halves_interleaved():
    return Halves(), (randn(2, 8, 3),), (randn(3, 13, 3),)


@case("x.0")
def pyramid_pooling_at_multiples():
    return Pyramid(), (randn(2, 4, 12, 12),), (randn(3, 4, 24, 24),)


class Pyramid(nn.Module):
    """PSPNet's pooling at 1, 2, 3 and 6 bins, resized to the input."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(4, 2, 1) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        size = x.shape[-2:]
        levels = [
            F.interpolate(conv(F.adaptive_avg_pool2d(x, bins)), size, mode="bilinear", align_corners=False)
            for conv, bins in zip(self.convs, (1, 2, 3, 6), strict=True)
        ]
        return torch.cat([x, *levels], 1)


@case("x.0", "x.2", "x.3")
def adaptive_average_pool_any_size():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d((3, 2)), nn.Flatten(), nn.Linear(24, 5))
    return net, (randn(2, 3, 11, 13),), (randn(1, 3, 18, 9),)


@case("x.0", "x.2")
def adaptive_max_pool_any_length():
    return nn.Sequential(nn.Conv1d(3, 4, 3), nn.AdaptiveMaxPool1d(4)), (randn(2, 3, 11),), (randn(3, 3, 17),)


class SamePadding(nn.Module):
    """TensorFlow's SAME padding, computed from the input as EfficientNet ports do."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        ih, iw = x.size()[-2:]
        oh, ow = math.ceil(ih / 2), math.ceil(iw / 2)
        ph, pw = max((oh - 1) * 2 + 3 - ih, 0), max((ow - 1) * 2 + 3 - iw, 0)
        if ph > 0 or pw > 0:
            x = F.pad(x, [pw // 2, pw - pw // 2, ph // 2, ph - ph // 2])
        return self.conv(x)


@case("x.0", "x.2", "x.3")
def same_padding():
    return SamePadding(), (randn(2, 3, 9, 12),), (randn(1, 3, 14, 11),)


class Grid(nn.Module):
    """Coordinates of every pixel, appended as channels."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(5, 4, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        batch, _, h, w = x.shape
        ys = torch.linspace(-1, 1, h).view(1, 1, h, 1).expand(batch, 1, h, w)
        xs = torch.linspace(-1, 1, w).view(1, 1, 1, w).expand(batch, 1, h, w)
        return self.conv(torch.cat([x, ys, xs], 1))


@case("x.0", "x.2", "x.3")
def coordinate_convolution():
    return Grid(), (randn(2, 3, 6, 7),), (randn(1, 3, 9, 5),)


class SinusoidalPositions(nn.Module):
    """Positions made for the length; the loop over widths is Python's."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        table = torch.zeros(length, self.width)
        position = torch.arange(length, dtype=torch.float).unsqueeze(1)
        rate = torch.exp(torch.arange(0, self.width, 2).float() * (-math.log(10000.0) / self.width))
        table[:, 0::2], table[:, 1::2] = torch.sin(position * rate), torch.cos(position * rate)
        return x + table


@case("x.0", "x.1")
def sinusoidal_positions():
    return SinusoidalPositions(), (randn(2, 5, 6),), (randn(3, 11, 6),)


class Alibi(nn.Module):
    """Attention biased by distance, and a mask made for the length."""

    def __init__(self, heads: int = 2) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.slopes = [2 ** (-8 * (i + 1) / heads) for i in range(heads)]

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        q, k, v = (part.view(b, t, 2, 4).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        distance = torch.arange(t)[None, :] - torch.arange(t)[:, None]
        bias = torch.stack([distance * slope for slope in self.slopes])
        mask = torch.triu(torch.full((t, t), float("-inf")), diagonal=1)
        scores = q @ k.transpose(-1, -2) / 2 + bias + mask
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, 8)


@case("x.0", "x.1")
def alibi_attention():
    return Alibi(), (randn(2, 5, 8),), (randn(3, 9, 8),)


class RelativeBuckets(nn.Module):
    """T5's logarithmic buckets of relative positions."""

    def __init__(self, buckets: int = 8, far: int = 16) -> None:
        super().__init__()
        self.buckets, self.far, self.bias = buckets, far, nn.Embedding(buckets, 2)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        relative = torch.arange(length)[None, :] - torch.arange(length)[:, None]
        half = self.buckets // 2
        side = (relative > 0).long() * half
        n = relative.abs()
        exact = half // 2
        large = exact + (torch.log(n.float() / exact) / math.log(self.far / exact) * (half - exact)).long()
        large = torch.min(large, torch.full_like(large, half - 1))
        bucket = side + torch.where(n < exact, n, large)
        return self.bias(bucket).permute(2, 0, 1).unsqueeze(0) + x.mean()


@case("x.1")
def relative_position_buckets():
    return RelativeBuckets(), (randn(2, 6, 3),), (randn(2, 21, 3),)


class Local(nn.Module):
    """Longformer's sliding windows by padding and unfolding."""

    def __init__(self) -> None:
        super().__init__()
        self.radius = 2

    def forward(self, x: Tensor) -> Tensor:
        r = self.radius
        windows = F.pad(x, (0, 0, r, r)).unfold(1, 2 * r + 1, 1)
        weights = torch.einsum("btd,btdk->btk", x, windows).softmax(-1)
        return torch.einsum("btk,btdk->btd", weights, windows)


@case("x.0", "x.1")
def sliding_window():
    return Local(), (randn(2, 7, 4),), (randn(3, 12, 4),)


class Blockwise(nn.Module):
    """Blocks of four after padding to a multiple of it; raises on nothing."""

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[-1]
        blocks = -(-length // 4)
        x = F.pad(x, (0, blocks * 4 - length))
        return x.reshape(*x.shape[:-1], blocks, 4).amax(-1)


@case("x.0", "x.1")
def blockwise_maximum():
    return Blockwise(), (randn(3, 10),), (randn(2, 16),), (randn(4, 5),)


class PixelUnshuffleAny(nn.Module):
    """Space to depth for sizes that are multiples of two."""

    def forward(self, x: Tensor) -> Tensor:
        b, c, h, w = x.shape
        assert h % 2 == 0, f"height {h}"
        assert w % 2 == 0, f"width {w}"
        return x.view(b, c, h // 2, 2, w // 2, 2).permute(0, 1, 3, 5, 2, 4).reshape(b, c * 4, h // 2, w // 2)


@case("x.0", "x.2", "x.3")
def space_to_depth():
    return PixelUnshuffleAny(), (randn(2, 3, 8, 6),), (randn(1, 3, 12, 10),)


class MultiScale(nn.Module):
    """A feature pyramid at scales computed in floating point."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        h, w = x.shape[-2:]
        return tuple(
            self.conv(F.interpolate(x, size=(max(1, int(h * s)), max(1, round(w * s))), mode="nearest"))
            for s in (1.0, 0.75, 0.5)
        )


@case("x.0", "x.2", "x.3")
def image_pyramid():
    return MultiScale(), (randn(2, 3, 12, 16),), (randn(1, 3, 20, 9),)


class Upsampler(nn.Module):
    """Upsampling to the size of another feature map."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.mix = nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.Conv2d(7, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        low = self.down(x)
        up = F.interpolate(low, scale_factor=2, mode="bilinear", align_corners=True)
        dy, dx = x.shape[2] - up.shape[2], x.shape[3] - up.shape[3]
        up = F.pad(up, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.mix(torch.cat([x, up], 1))


@case("x.0", "x.2", "x.3")
def upsample_padded_to_the_skip():
    return Upsampler(), (randn(2, 3, 9, 12),), (randn(1, 3, 14, 11),)


class Rotary(nn.Module):
    """Rotary embeddings cached for a maximum, sliced to the length."""

    def __init__(self, width: int = 8, most: int = 32) -> None:
        super().__init__()
        angle = torch.outer(torch.arange(most).float(), 1 / 100 ** (torch.arange(0, width, 2) / width))
        self.register_buffer("cos", angle.cos().repeat(1, 2))
        self.register_buffer("sin", angle.sin().repeat(1, 2))

    def forward(self, q: Tensor) -> Tensor:
        length = q.shape[-2]
        first, second = q.chunk(2, -1)
        return q * self.cos[:length] + torch.cat([-second, first], -1) * self.sin[:length]


@case("q.0", "q.1")
def rotary_sliced_table():
    return Rotary(), (randn(2, 5, 8),), (randn(3, 11, 8),)


class MelFrames(nn.Module):
    """Frames of a signal: reflected, strided, windowed."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))
        self.register_buffer("mel", torch.rand(9, 5))

    def forward(self, wave: Tensor) -> Tensor:
        frames = F.pad(wave, (8, 8), mode="reflect").unfold(-1, 16, 8) * self.window
        return torch.log(torch.fft.rfft(frames).abs().pow(2) @ self.mel + 1e-6)


@case("wave.0", "wave.1")
def mel_spectrogram_by_frames():
    return MelFrames(), (randn(2, 50),), (randn(3, 83),)
