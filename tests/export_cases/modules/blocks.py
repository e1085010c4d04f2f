"""Blocks of larger networks, as their authors write them: attention of many kinds, maps at several scales."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randn

from tests.export_cases.case import case


class LocalAttention(nn.Module):
    """Each block of queries attends to itself and its neighbours; the length is padded to whole blocks."""

    def __init__(self, width: int = 8, heads: int = 2, block: int = 4) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.block = heads, block

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        b, n, width = x.shape
        missing = (self.block - n % self.block) % self.block
        x, mask = F.pad(x, (0, 0, 0, missing)), F.pad(mask, (0, missing), value=False)
        q, k, v = (
            t.view(b, -1, self.block, self.heads, width // self.heads).permute(0, 3, 1, 2, 4)
            for t in self.qkv(x).chunk(3, dim=-1)
        )
        k, v = (torch.cat([F.pad(t, (0, 0, 0, 0, 1, -1)), t, F.pad(t, (0, 0, 0, 0, -1, 1))], dim=3) for t in (k, v))
        seen = mask.view(b, 1, -1, 1, self.block)
        seen = torch.cat([F.pad(seen, (0, 0, 0, 0, 1, -1)), seen, F.pad(seen, (0, 0, 0, 0, -1, 1))], dim=4)
        scores = (q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
        attention = scores.masked_fill(~seen, -1e9).softmax(-1)
        y = (attention @ v).permute(0, 2, 3, 1, 4).reshape(b, -1, width)
        return self.out(y)[:, :n]


@case("x.0", "x.1", "mask.0", "mask.1")
def attention_among_neighbouring_blocks():
    def call(b: int, n: int):
        mask = torch.ones(b, n, dtype=torch.bool)
        mask[0, -2:] = False
        return randn(b, n, 8), mask

    return LocalAttention(), call(2, 10), call(3, 16), call(1, 5)


class Latents(nn.Module):
    """A fixed number of latent vectors reads an input of any length."""

    def __init__(self, width: int = 8, count: int = 5) -> None:
        super().__init__()
        self.latents = nn.Parameter(randn(count, width))
        self.read = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm, self.think = nn.LayerNorm(width), nn.TransformerEncoderLayer(width, 2, 16, batch_first=True)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        z = self.latents.expand(x.size(0), -1, -1)
        y, _ = self.read(self.norm(z), x, x, key_padding_mask=padding, need_weights=False)
        return self.think(z + y).mean(dim=1)


@case("x.0", "x.1", "padding.0", "padding.1")
def latents_that_read():
    def call(b: int, n: int):
        return randn(b, n, 8), torch.arange(n).repeat(b, 1) >= n - 1

    return Latents(), call(2, 7), call(4, 12)


class Capacity(nn.Module):
    """Each expert takes as many tokens as there is room for; the others pass by."""

    def __init__(self, width: int = 6, experts: int = 3) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.up, self.down = (
            nn.Parameter(randn(experts, width, 12) * 0.3),
            nn.Parameter(randn(experts, 12, width) * 0.3),
        )

    def forward(self, x: Tensor) -> Tensor:
        b, n, width = x.shape
        flat = x.reshape(-1, width)
        weight, expert = self.gate(flat).softmax(-1).max(dim=-1)
        room = math.ceil(flat.shape[0] / self.up.shape[0])
        chosen = F.one_hot(expert, self.up.shape[0])
        place = (chosen.cumsum(0) * chosen).sum(-1) - 1
        kept = place < room
        slot = torch.where(kept, expert * room + place, self.up.shape[0] * room)
        buffer = torch.zeros(self.up.shape[0] * room + 1, width).index_copy(0, slot, flat)
        hidden = buffer[:-1].view(self.up.shape[0], room, width)
        hidden = torch.bmm(F.gelu(torch.bmm(hidden, self.up)), self.down).reshape(-1, width)
        hidden = torch.cat([hidden, torch.zeros(1, width)])
        return x + (hidden[slot] * (weight * kept)[:, None]).view(b, n, width)


@case("x.0", "x.1")
def experts_with_room():
    return Capacity(), (randn(2, 6, 6),), (randn(3, 5, 6),), (randn(1, 11, 6),)


class Axial(nn.Module):
    """Attention along rows, then along columns, with rotary positions of each."""

    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.row, self.column = nn.Linear(width, 3 * width), nn.Linear(width, 3 * width)
        self.register_buffer("rates", 1.0 / 100 ** (torch.arange(0, width // heads, 2).float() / (width // heads)))

    def rotate(self, t: Tensor) -> Tensor:
        angle = torch.outer(torch.arange(t.shape[-2]).float(), self.rates)
        a, b = t[..., ::2], t[..., 1::2]
        return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).flatten(-2)

    def along(self, x: Tensor, layer: nn.Linear) -> Tensor:
        lines, n, width = x.shape
        q, k, v = layer(x).view(lines, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v)
        return y.transpose(1, 2).reshape(lines, n, width)

    def forward(self, x: Tensor) -> Tensor:
        b, c, h, w = x.shape
        y = self.along(x.permute(0, 2, 3, 1).reshape(b * h, w, c), self.row).view(b, h, w, c)
        y = self.along(y.permute(0, 2, 1, 3).reshape(b * w, h, c), self.column).view(b, w, h, c)
        return x + y.permute(0, 3, 2, 1)


@case("x.0", "x.2", "x.3")
def attention_along_rows_and_columns():
    return Axial(), (randn(2, 8, 5, 6),), (randn(1, 8, 9, 4),)


class OddUnet(nn.Module):
    """What comes up is padded to the size of what was handed over."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.down = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.up, self.leave = nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        skip = F.relu(self.enter(x))
        y = self.up(F.relu(self.down(F.max_pool2d(skip, 2))))
        dy, dx = skip.size(2) - y.size(2), skip.size(3) - y.size(3)
        y = F.pad(y, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.leave(torch.cat([skip, y], dim=1))


@case("x.0", "x.2", "x.3")
def network_of_odd_sizes():
    return OddUnet(), (randn(1, 3, 12, 10),), (randn(2, 3, 9, 13),)


class Atrous(nn.Module):
    """Convolutions of several rates beside the mean of the whole map."""

    def __init__(self) -> None:
        super().__init__()
        self.branches = nn.ModuleList(nn.Conv2d(4, 3, 3, padding=rate, dilation=rate) for rate in (1, 2, 4))
        self.pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 3, 1), nn.ReLU())
        self.project = nn.Sequential(nn.Conv2d(12, 4, 1, bias=False), nn.BatchNorm2d(4), nn.Dropout(0.5))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        found = [branch(x) for branch in self.branches]
        found.append(F.interpolate(self.pooled(x), size=x.shape[-2:], mode="bilinear", align_corners=False))
        y = self.project(torch.cat(found, dim=1))
        return {"out": F.interpolate(y, scale_factor=2, mode="bilinear"), "aux": y.argmax(1)}


@case("x.0", "x.2", "x.3")
def maps_of_several_rates():
    return Atrous(), (randn(2, 4, 8, 9),), (randn(1, 4, 12, 7),)


class Coordinates(nn.Module):
    """Attention from the means of rows and columns."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.rows, self.columns = nn.Conv2d(6, 4, 1), nn.Conv2d(4, 6, 1), nn.Conv2d(4, 6, 1)

    def forward(self, x: Tensor) -> Tensor:
        _, _, h, w = x.size()
        rows = F.adaptive_avg_pool2d(x, (None, 1))
        columns = F.adaptive_avg_pool2d(x, (1, None)).permute(0, 1, 3, 2)
        y = F.hardswish(self.mix(torch.cat([rows, columns], dim=2)))
        rows, columns = torch.split(y, [h, w], dim=2)
        return x * self.rows(rows).sigmoid() * self.columns(columns.permute(0, 1, 3, 2)).sigmoid()


@case("x.0", "x.2", "x.3")
def attention_by_coordinates():
    return Coordinates(), (randn(2, 6, 5, 7),), (randn(3, 6, 8, 4),)


class LinearCausal(nn.Module):
    """Attention without softmax: sums of products so far."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = F.elu(self.q(x)) + 1, F.elu(self.k(x)) + 1, self.v(x)
        state = torch.einsum("bnd,bne->bnde", k, v).cumsum(dim=1)
        scale = torch.einsum("bnd,bnd->bn", q, k.cumsum(dim=1)) + 1e-6
        return torch.einsum("bnd,bnde->bne", q, state) / scale.unsqueeze(-1)


@case("x.0", "x.1")
def attention_by_running_sums():
    return LinearCausal(), (randn(2, 5, 6),), (randn(3, 9, 6),)


class Buckets(nn.Module):
    """A bias by the distance of tokens, in buckets that grow; slopes for the heads; causal."""

    def __init__(self, heads: int = 4, buckets: int = 8) -> None:
        super().__init__()
        self.bias, self.buckets = nn.Embedding(buckets, heads), buckets
        self.register_buffer("slopes", 2.0 ** -torch.arange(1, heads + 1))

    def bucket(self, distance: Tensor) -> Tensor:
        exact = self.buckets // 2
        large = exact + (torch.log(distance.float().clamp(min=1) / exact) / math.log(4) * exact).long()
        return torch.where(distance < exact, distance, large.clamp(max=self.buckets - 1))

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        n, m = q.size(-2), k.size(-2)
        distance = torch.arange(m - n, m)[:, None] - torch.arange(m)[None, :]
        bias = self.bias(self.bucket(distance.clamp(min=0))).permute(2, 0, 1)
        bias = bias - self.slopes[:, None, None] * distance.clamp(min=0)
        bias = bias.masked_fill(distance < 0, float("-inf"))
        return torch.softmax(q @ k.mT / q.size(-1) ** 0.5 + bias, dim=-1) @ v


@case("q.0", "q.2", "k.2", "v.2")
def bias_by_distance_with_past():
    def call(b: int, n: int, past: int):
        return randn(b, 4, n, 3), randn(b, 4, n + past, 3), randn(b, 4, n + past, 3)

    return Buckets(), call(2, 3, 4), call(1, 1, 8), call(3, 6, 0)


class LongConvolution(nn.Module):
    """A filter as long as the input, by Fourier transforms of twice its length; its taps come of a small network."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, width))
        self.skip = nn.Parameter(randn(width))

    def forward(self, u: Tensor) -> Tensor:
        n = u.shape[1]
        t = torch.linspace(0, 1, n).unsqueeze(-1)
        taps = self.filter(torch.cat([t, torch.cos(2 * math.pi * t), torch.sin(2 * math.pi * t)], -1)) * torch.exp(-t)
        u = u.transpose(1, 2)
        y = torch.fft.irfft(torch.fft.rfft(u, n=2 * n) * torch.fft.rfft(taps.T, n=2 * n), n=2 * n)[..., :n]
        return (y + u * self.skip[:, None]).transpose(1, 2)


@case("u.0", "u.1")
def filter_as_long_as_the_input():
    return LongConvolution(), (randn(2, 8, 4),), (randn(3, 13, 4),)


class DeformableLevels(nn.Module):
    """Samples from maps of several sizes, which come flattened, with their sizes as a tensor."""

    def __init__(self, width: int = 8, heads: int = 2, levels: int = 2, points: int = 3) -> None:
        super().__init__()
        self.dims = heads, levels, points
        self.value = nn.Linear(width, width)
        self.offset, self.weight = (
            nn.Linear(width, heads * levels * points * 2),
            nn.Linear(width, heads * levels * points),
        )

    def forward(self, query: Tensor, reference: Tensor, memory: Tensor, shapes: Tensor) -> Tensor:
        heads, levels, points = self.dims
        b, n, width = query.shape
        value = self.value(memory).view(b, -1, heads, width // heads)
        offset = self.offset(query).view(b, n, heads, levels, points, 2)
        weight = self.weight(query).view(b, n, heads, levels * points).softmax(-1)
        place = reference[:, :, None, None, None] + offset / shapes.flip(-1)[None, None, None, :, None]
        found = []
        for level, part in enumerate(value.split([int(h) * int(w) for h, w in shapes], dim=1)):
            h, w = shapes[level]
            image = part.permute(0, 2, 3, 1).reshape(b * heads, width // heads, int(h), int(w))
            grid = (2 * place[:, :, :, level] - 1).transpose(1, 2).flatten(0, 1)
            found.append(F.grid_sample(image, grid, align_corners=False))
        y = torch.stack(found, dim=-2).flatten(-2) * weight.transpose(1, 2).reshape(b * heads, 1, n, -1)
        return y.sum(-1).view(b, width, n).transpose(1, 2)


@case("query.0", "query.1", "memory.0", "memory.1")
def samples_from_levels():
    def call(b: int, n: int, *sizes: tuple[int, int]):
        return randn(b, n, 8), rand(b, n, 2), randn(b, sum(h * w for h, w in sizes), 8), torch.tensor(sizes)

    return DeformableLevels(), call(2, 4, (4, 5), (2, 3)), call(1, 7, (6, 3), (3, 2))


class Codes(nn.Module):
    """The nearest code of each vector, and how evenly codes are used."""

    def __init__(self, count: int = 6, width: int = 4) -> None:
        super().__init__()
        self.codes = nn.Embedding(count, width)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        flat = z.permute(0, 2, 3, 1).reshape(-1, self.codes.embedding_dim)
        table = self.codes.weight
        distance = flat.pow(2).sum(1, keepdim=True) + table.pow(2).sum(1) - 2 * flat @ table.t()
        index = distance.argmin(dim=1)
        y = self.codes(index).view(z.size(0), z.size(2), z.size(3), -1).permute(0, 3, 1, 2).contiguous()
        share = torch.bincount(index, minlength=table.size(0)).float() / index.numel()
        return z + (y - z).detach(), index.view(z.size(0), -1), torch.exp(-(share * (share + 1e-10).log()).sum())


@case("z.0", "z.2", "z.3")
def nearest_codes():
    return Codes(), (randn(2, 4, 3, 5),), (randn(1, 4, 6, 4),)


class Correlation(nn.Module):
    """How two maps agree at every shift of a few pixels, and one of them warped by the best."""

    def __init__(self, reach: int = 2) -> None:
        super().__init__()
        self.reach = reach

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        r = self.reach
        h, w = a.shape[-2:]
        padded = F.pad(b, (r, r, r, r))
        volume = torch.stack(
            [
                (a * padded[:, :, dy : dy + h, dx : dx + w]).mean(1)
                for dy in range(2 * r + 1)
                for dx in range(2 * r + 1)
            ],
            1,
        )
        shift = torch.stack(torch.meshgrid(torch.arange(-r, r + 1), torch.arange(-r, r + 1), indexing="xy")).flatten(1)
        flow = torch.einsum("nkhw,dk->ndhw", volume.softmax(1), shift.float())
        base = torch.stack(torch.meshgrid(torch.arange(w), torch.arange(h), indexing="xy")).float()
        place = base[None] + flow
        place = torch.stack([2 * place[:, 0] / max(w - 1, 1) - 1, 2 * place[:, 1] / max(h - 1, 1) - 1], -1)
        return volume, F.grid_sample(b, place, align_corners=True)


@case("a.0", "a.2", "a.3")
def agreement_at_shifts():
    def call(n: int, h: int, w: int):
        return randn(n, 3, h, w), randn(n, 3, h, w)

    return Correlation(), call(2, 6, 7), call(1, 9, 5)


class Aligned(nn.Module):
    """An affine map predicted from the image straightens it."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(), nn.AdaptiveMaxPool2d(2), nn.Flatten())
        self.theta = nn.Linear(16, 6)

    def forward(self, x: Tensor) -> Tensor:
        theta = self.theta(self.features(x)).view(-1, 2, 3) * 0.1 + torch.eye(2, 3)
        return F.grid_sample(x, F.affine_grid(theta, list(x.size()), align_corners=False), align_corners=False)


@case("x.0", "x.2", "x.3")
def image_straightened():
    return Aligned(), (randn(2, 1, 9, 8),), (randn(3, 1, 12, 15),)


class Subsampled(nn.Module):
    """Each place looks at a pooled map; normalised by channel groups afterwards."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.theta, self.phi, self.g = (nn.Conv2d(width, 4, 1) for _ in range(3))
        self.pool, self.out = (
            nn.MaxPool2d(2, ceil_mode=True),
            nn.Sequential(nn.Conv2d(4, width, 1), nn.GroupNorm(4, width)),
        )

    def forward(self, x: Tensor) -> Tensor:
        theta = self.theta(x).flatten(2).transpose(1, 2)
        phi, g = self.pool(self.phi(x)).flatten(2), self.pool(self.g(x)).flatten(2).transpose(1, 2)
        y = (theta @ phi).softmax(-1) @ g
        return x + self.out(y.transpose(1, 2).unflatten(2, x.shape[2:]))


@case("x.0", "x.2", "x.3")
def every_place_looks_at_a_pooled_map():
    return Subsampled(), (randn(2, 8, 5, 6),), (randn(1, 8, 7, 8),)
