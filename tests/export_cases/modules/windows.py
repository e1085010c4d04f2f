"""Images in windows and patches, of sizes that do not divide."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class PatchMerging(nn.Module):
    """Swin's merging of two by two, padded when odd."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.norm, self.reduction = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        _, h, w, _ = x.shape
        if h % 2 == 1 or w % 2 == 1:
            x = F.pad(x, (0, 0, 0, w % 2, 0, h % 2))
        parts = [x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]]
        return self.reduction(self.norm(torch.cat(parts, -1)))


@case("x.0", "x.1", "x.2")
def patch_merging_of_odd_sizes():
    return PatchMerging(), (randn(2, 7, 8, 4),), (randn(1, 6, 9, 4),), (randn(3, 4, 4, 4),)


class ShiftedWindows(nn.Module):
    """Shifted windows with the mask that belongs to them, made for the size."""

    def __init__(self, width: int = 4, window: int = 4) -> None:
        super().__init__()
        self.window, self.shift = window, window // 2
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def mask(self, h: int, w: int) -> Tensor:
        regions, count = torch.zeros(1, h, w, 1), 0
        cuts = (slice(0, -self.window), slice(-self.window, -self.shift), slice(-self.shift, None))
        for rows in cuts:
            for columns in cuts:
                regions[:, rows, columns] = count
                count += 1
        windows = self.partition(regions).squeeze(-1)
        difference = windows.unsqueeze(1) - windows.unsqueeze(2)
        return torch.zeros_like(difference).masked_fill(difference != 0, -100.0)

    def partition(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        n = self.window
        return x.view(b, h // n, n, w // n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, n * n, c)

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        n = self.window
        bottom, right = (n - h % n) % n, (n - w % n) % n
        x = F.pad(x, (0, 0, 0, right, 0, bottom))
        hp, wp = h + bottom, w + right
        x = torch.roll(x, (-self.shift, -self.shift), (1, 2))
        q, k, v = self.qkv(self.partition(x)).chunk(3, -1)
        mask = self.mask(hp, wp)
        scores = q @ k.transpose(-1, -2)
        scores = (scores.view(b, mask.shape[0], n * n, n * n) + mask).view(-1, n * n, n * n)
        x = self.proj(scores.softmax(-1) @ v)
        x = x.view(b, hp // n, wp // n, n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(b, hp, wp, c)
        return torch.roll(x, (self.shift, self.shift), (1, 2))[:, :h, :w]


@case("x.0", "x.1", "x.2")
def shifted_windows_with_mask():
    return ShiftedWindows(), (randn(2, 9, 12, 4),), (randn(1, 12, 10, 4),)


class GridAttention(nn.Module):
    """MaxViT's attention across a fixed grid."""

    def __init__(self, width: int = 4, grid: int = 3) -> None:
        super().__init__()
        self.grid, self.net = grid, nn.MultiheadAttention(width, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        b, c, h, w = x.shape
        g = self.grid
        ph, pw = -h % g, -w % g
        x = F.pad(x, (0, pw, 0, ph))
        hh, ww = (h + ph) // g, (w + pw) // g
        y = x.view(b, c, g, hh, g, ww).permute(0, 3, 5, 2, 4, 1).reshape(b * hh * ww, g * g, c)
        y = self.net(y, y, y, need_weights=False)[0]
        y = y.view(b, hh, ww, g, g, c).permute(0, 5, 3, 1, 4, 2).reshape(b, c, h + ph, w + pw)
        return y[..., :h, :w]


@case("x.0", "x.2", "x.3")
def grid_attention():
    return GridAttention(), (randn(2, 4, 6, 7),), (randn(1, 4, 8, 9),)


class Tiled(nn.Module):
    """Super-resolution tile by tile; tiles at the border are smaller."""

    def __init__(self, tile: int = 6) -> None:
        super().__init__()
        self.tile = tile
        self.net = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, x: Tensor) -> Tensor:
        b, _, h, w = x.shape
        out = x.new_zeros(b, 3, h * 2, w * 2)
        for top in range(0, h, self.tile):
            for left in range(0, w, self.tile):
                part = x[:, :, top : top + self.tile, left : left + self.tile]
                out[:, :, 2 * top : 2 * (top + self.tile), 2 * left : 2 * (left + self.tile)] = self.net(part)
        return out


@case("x.0")
def super_resolution_in_tiles():
    return Tiled(), (randn(2, 3, 10, 14),), (randn(1, 3, 10, 14),)


class DeepPatches(nn.Module):
    """ViT with a class token whose positions are resized but for the token's."""

    def __init__(self, width: int = 8, grid: int = 4) -> None:
        super().__init__()
        self.grid = grid
        self.patch = nn.Conv2d(3, width, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, grid * grid + 1, width))
        self.block = nn.TransformerEncoderLayer(width, 2, 16, batch_first=True, norm_first=True)

    def resized(self, n: int, h: int, w: int) -> Tensor:
        if n == self.positions.shape[1] - 1 and h == w:
            return self.positions
        token, grid = self.positions[:, :1], self.positions[:, 1:]
        width = grid.shape[-1]
        grid = grid.reshape(1, self.grid, self.grid, width).permute(0, 3, 1, 2)
        grid = F.interpolate(grid, size=(h, w), mode="bicubic", antialias=False)
        return torch.cat([token, grid.permute(0, 2, 3, 1).reshape(1, -1, width)], 1)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patch(image)
        b, _, h, w = x.shape
        x = x.flatten(2).transpose(1, 2)
        positions = self.resized(x.shape[1], h, w)
        return self.block(torch.cat([self.token.expand(b, -1, -1), x], 1) + positions)[:, 0]


@case("image.0", "image.2", "image.3")
def class_token_and_resized_positions():
    return DeepPatches(), (randn(2, 3, 16, 16),), (randn(1, 3, 24, 20),), (randn(1, 3, 12, 20),)


class UNetSkip(nn.Module):
    """A U-Net that resizes where sizes do not fit, with a time embedding."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, 8), nn.SiLU(), nn.Linear(8, width))
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.middle = nn.Sequential(nn.GroupNorm(2, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1))
        self.last = nn.Conv2d(2 * width, 3, 3, padding=1)

    def embedded(self, t: Tensor) -> Tensor:
        half = self.width // 2
        rate = torch.exp(-torch.arange(half, dtype=torch.float32) * (9.21 / (half - 1)))
        angle = t[:, None].float() * rate[None]
        return self.time(torch.cat([angle.sin(), angle.cos()], -1))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        first = self.first(x)
        low = self.down(first) + self.embedded(t)[:, :, None, None]
        up = F.interpolate(self.middle(low), scale_factor=2.0, mode="nearest")
        if up.shape[-2:] != first.shape[-2:]:
            up = F.interpolate(up, size=first.shape[-2:], mode="bilinear", align_corners=False)
        return self.last(torch.cat([up, first], 1))


@case("x.0", "x.2", "x.3")
def diffusion_unet_with_time():
    sample = randn(2, 3, 8, 12), torch.tensor([3, 500])
    return UNetSkip(), sample, (randn(1, 3, 10, 8), torch.tensor([7])), (randn(3, 3, 9, 11), torch.tensor([1, 2, 3]))


class RelativeBias2d(nn.Module):
    """Attention over an image with decomposed relative positions, tables resized to the size."""

    def __init__(self, width: int = 4, size: int = 5) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.rows = nn.Parameter(torch.randn(2 * size - 1, width))
        self.columns = nn.Parameter(torch.randn(2 * size - 1, width))

    def table(self, size: int, table: Tensor) -> Tensor:
        most = 2 * size - 1
        if table.shape[0] != most:
            table = F.interpolate(table.t().unsqueeze(0), size=most, mode="linear")[0].t()
        place = torch.arange(size)[:, None] - torch.arange(size)[None, :] + size - 1
        return table[place]

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        q, k, v = self.qkv(x).reshape(b, h * w, 3, c).unbind(2)
        grid = q.view(b, h, w, c)
        rows = torch.einsum("bhwc,hkc->bhwk", grid, self.table(h, self.rows))
        columns = torch.einsum("bhwc,wkc->bhwk", grid, self.table(w, self.columns))
        scores = (q @ k.transpose(-1, -2)).view(b, h, w, h, w)
        scores = scores + rows[..., :, None] + columns[..., None, :]
        return (scores.view(b, h * w, h * w).softmax(-1) @ v).view(b, h, w, c)


@case("x.0", "x.1", "x.2")
def decomposed_relative_positions():
    return RelativeBias2d(), (randn(2, 5, 6, 4),), (randn(1, 7, 4, 4),)


class DeformableAttention(nn.Module):
    """Multi-scale deformable attention in plain torch, as reference code has it."""

    def __init__(self, width: int = 8, heads: int = 2, points: int = 3) -> None:
        super().__init__()
        self.heads, self.points = heads, points
        self.value, self.offsets = nn.Linear(width, width), nn.Linear(width, heads * 2 * points * 2)
        self.weights = nn.Linear(width, heads * 2 * points)

    def forward(self, query: Tensor, first: Tensor, second: Tensor, reference: Tensor) -> Tensor:
        b, q, c = query.shape
        maps = [first, second]
        shapes = [tuple(each.shape[-2:]) for each in maps]
        flat = torch.cat([each.flatten(2).transpose(1, 2) for each in maps], 1)
        value = self.value(flat).view(b, -1, self.heads, c // self.heads)
        offsets = self.offsets(query).view(b, q, self.heads, 2, self.points, 2)
        weights = self.weights(query).view(b, q, self.heads, 2 * self.points).softmax(-1)
        sizes = torch.tensor([[w, h] for h, w in shapes], dtype=query.dtype)
        places = reference[:, :, None, None, None, :] + offsets / sizes[None, None, None, :, None, :]
        grids = 2 * places - 1
        found = []
        for level, part in enumerate(value.split([h * w for h, w in shapes], dim=1)):
            h, w = shapes[level]
            image = part.permute(0, 2, 3, 1).reshape(b * self.heads, c // self.heads, h, w)
            grid = grids[:, :, :, level].transpose(1, 2).flatten(0, 1)
            found.append(F.grid_sample(image, grid, align_corners=False))
        weights = weights.transpose(1, 2).reshape(b * self.heads, 1, q, 2 * self.points)
        out = (torch.stack(found, dim=-2).flatten(-2) * weights).sum(-1)
        return out.view(b, c, q).transpose(1, 2)


@case("query.0", "query.1", "first.2", "first.3", "second.2", "second.3")
def deformable_attention():
    net = DeformableAttention()
    sample = randn(2, 5, 8), randn(2, 8, 6, 7), randn(2, 8, 3, 4), torch.rand(2, 5, 2)
    return net, sample, (randn(1, 7, 8), randn(1, 8, 9, 5), randn(1, 8, 4, 3), torch.rand(1, 7, 2))


class PixelDecoder(nn.Module):
    """A feature pyramid: upsampled from the top and added."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList(nn.Conv2d(c, 4, 3, stride=2, padding=1) for c in (3, 4, 4))
        self.out = nn.ModuleList(nn.Conv2d(4, 4, 3, padding=1) for _ in range(3))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        found = []
        for stage in self.stages:
            x = stage(x)
            found.append(x)
        top, results = None, {}
        for name, level, conv in zip(("p5", "p4", "p3"), reversed(found), self.out, strict=True):
            top = level if top is None else level + F.interpolate(top, size=level.shape[-2:], mode="nearest")
            results[name] = conv(top)
        return results


@case("x.0", "x.2", "x.3")
def feature_pyramid():
    return PixelDecoder(), (randn(2, 3, 20, 26),), (randn(1, 3, 17, 31),)


class ToRgb(nn.Module):
    """A StyleGAN block: noise given, modulated weights, blurred upsampling."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, width, width, 3, 3))
        self.style = nn.Linear(5, width)
        self.register_buffer("blur", torch.tensor([1.0, 3.0, 3.0, 1.0]).outer(torch.tensor([1.0, 3.0, 3.0, 1.0])) / 64)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        b, c, h, w = x.shape
        weight = self.weight * (self.style(style).view(b, 1, c, 1, 1) + 1)
        weight = weight * torch.rsqrt(weight.pow(2).sum([2, 3, 4], keepdim=True) + 1e-8)
        x = F.conv2d(x.reshape(1, b * c, h, w), weight.view(b * c, c, 3, 3), padding=1, groups=b).view(b, c, h, w)
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        return F.conv2d(F.pad(x, (2, 1, 2, 1)), self.blur.expand(c, 1, 4, 4), groups=c)


@case("x.0", "x.2", "x.3")
def style_block_with_groups_of_the_batch():
    return ToRgb(), (randn(2, 4, 6, 5), randn(2, 5)), (randn(3, 4, 7, 8), randn(3, 5)), (randn(1, 4, 4, 4), randn(1, 5))
