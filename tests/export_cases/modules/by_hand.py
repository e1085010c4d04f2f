"""Attention that people write themselves: landmarks, blocks, caches in dataclasses, sets, covariances, depths."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randint, randn

from tests.export_cases.case import case


class Landmarks(nn.Module):
    """Attention through landmarks: means of segments, and an inverse by iteration."""

    def __init__(self, width: int = 8, heads: int = 2, landmarks: int = 4) -> None:
        super().__init__()
        self.heads, self.m = heads, landmarks
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.res = nn.Conv2d(heads, heads, (5, 1), padding=(2, 0), groups=heads, bias=False)

    def inverse(self, x: Tensor) -> Tensor:
        a = x.abs()
        z = x.transpose(-1, -2) / (a.sum(-1).max() * a.sum(-2).max())
        eye = torch.eye(x.shape[-1], device=x.device)[None, None]
        for _ in range(6):
            xz = x @ z
            z = 0.25 * z @ (13 * eye - xz @ (15 * eye - xz @ (7 * eye - xz)))
        return z

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        rest = n % self.m
        if rest > 0:
            x = F.pad(x, (0, 0, self.m - rest, 0))
        q, k, v = (t.reshape(b, -1, self.heads, d // self.heads).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        q = q * (d // self.heads) ** -0.5
        size = math.ceil(n / self.m)
        ql = q.reshape(b, self.heads, self.m, size, -1).mean(3)
        kl = k.reshape(b, self.heads, self.m, size, -1).mean(3)
        first, second, third = ((s @ t.transpose(-1, -2)).softmax(-1) for s, t in ((q, kl), (ql, kl), (ql, k)))
        y = first @ self.inverse(second) @ (third @ v) + self.res(v)
        return self.out(y.transpose(1, 2).reshape(b, -1, d)[:, -n:])


@case("x.0", "x.1")
def attention_through_landmarks():
    return Landmarks(), (randn(2, 11, 8),), (randn(2, 16, 8),), (randn(3, 21, 8),)


@dataclass
class KeyValues:
    """What a layer remembers."""

    k: Tensor
    v: Tensor
    seen: int = 0


@dataclass
class Step:
    """Tokens, and what was before them."""

    tokens: Tensor
    layers: list[KeyValues] = field(default_factory=list)


class OneKeyHead(nn.Module):
    """A decoder whose heads share keys and values, with positions turned by the past's length."""

    def __init__(self, width: int = 8, heads: int = 2, layers: int = 2) -> None:
        super().__init__()
        self.heads, self.d = heads, width // heads
        self.emb = nn.Embedding(17, width)
        self.q = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.kv = nn.ModuleList(nn.Linear(width, 2 * self.d) for _ in range(layers))
        self.o = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.register_buffer("freq", 1.0 / 100 ** (torch.arange(0, self.d, 2) / self.d))

    def turn(self, x: Tensor, start: int) -> Tensor:
        angle = torch.arange(start, start + x.shape[-2], device=x.device)[:, None] * self.freq
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).flatten(-2)

    def forward(self, step: Step) -> tuple[Tensor, list[KeyValues]]:
        x, caches = self.emb(step.tokens), []
        b, n = step.tokens.shape
        for q, kv, o, layer in zip(self.q, self.kv, self.o, step.layers, strict=True):
            past = layer.k.shape[1]
            k, v = kv(x).chunk(2, -1)
            k = torch.cat([layer.k, self.turn(k, past)], 1)
            v = torch.cat([layer.v, v], 1)
            heads = self.turn(q(x).view(b, n, self.heads, self.d).transpose(1, 2), past)
            scores = heads @ k[:, None].transpose(-1, -2) / math.sqrt(self.d)
            visible = torch.ones(n, past + n, dtype=torch.bool).tril(past)
            scores = scores.masked_fill(~visible, torch.finfo(scores.dtype).min)
            x = x + o((scores.softmax(-1) @ v[:, None]).transpose(1, 2).reshape(b, n, -1))
            caches.append(KeyValues(k, v, past + n))
        return x @ self.emb.weight.t(), caches


def _step(batch: int, new: int, past: int) -> Step:
    layers = [KeyValues(randn(batch, past, 4), randn(batch, past, 4)) for _ in range(2)]
    return Step(randint(0, 17, (batch, new)), layers)


@case("step.tokens.0", "step.tokens.1")
def one_key_head_with_dataclasses():
    return OneKeyHead(), (_step(2, 3, 5),), (_step(1, 4, 7),), (_step(3, 2, 2),)


class SetBlock(nn.Module):
    """Attention to inducing points and back, then pooling by seeds, where a mask says who is there."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.points, self.seeds = nn.Parameter(randn(1, 3, width)), nn.Parameter(randn(1, 2, width))
        self.gather, self.spread, self.pool = (nn.MultiheadAttention(width, 2, batch_first=True) for _ in range(3))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        ignored = None if mask is None else ~mask
        h, _ = self.gather(self.points.expand(x.size(0), -1, -1), x, x, key_padding_mask=ignored, need_weights=False)
        x = self.norm(x + self.spread(x, h, h, need_weights=False)[0])
        pooled, weights = self.pool(self.seeds.repeat(x.size(0), 1, 1), x, x, key_padding_mask=ignored)
        return torch.cat([pooled, weights @ x], -1).flatten(1)


def _set(batch: int, n: int) -> tuple[Tensor, Tensor]:
    mask = torch.rand(batch, n) > 0.4
    mask[:, 0] = True
    return randn(batch, n, 8), mask


@case("x.0", "x.1")
def sets_by_inducing_points():
    return SetBlock(), _set(2, 7), _set(3, 4), _set(1, 12)


class Covariances(nn.Module):
    """Attention between channels instead of positions, and a convolution on the grid that the tokens come from."""

    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, width * 3), nn.Linear(width, width)
        self.temperature = nn.Parameter(torch.ones(heads, 1, 1))
        self.local = nn.Conv2d(width, width, 3, padding=1, groups=width)

    def forward(self, image: Tensor) -> Tensor:
        b, c, h, w = image.shape
        x = image.flatten(2).transpose(1, 2)
        qkv = self.qkv(x).reshape(b, h * w, 3, self.heads, c // self.heads).permute(2, 0, 3, 4, 1)
        q, k, v = qkv.unbind(0)
        attn = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)) * self.temperature
        x = x + self.proj((attn.softmax(dim=-1) @ v).permute(0, 3, 1, 2).reshape(b, h * w, c))
        return x + self.local(x.permute(0, 2, 1).reshape(b, c, h, w)).reshape(b, c, -1).permute(0, 2, 1)


@case("image.0", "image.2", "image.3")
def attention_between_channels():
    return Covariances(), (randn(2, 8, 5, 7),), (randn(1, 8, 9, 4),), (randn(3, 8, 6, 6),)


class Depths(nn.Module):
    """Only the tokens that a router picks go through the block."""

    def __init__(self, width: int = 8, share: float = 0.5) -> None:
        super().__init__()
        self.share, self.router = share, nn.Linear(width, 1)
        self.block = nn.TransformerEncoderLayer(width, 2, 16, dropout=0.0, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        _b, n, d = x.shape
        k = max(1, int(n * self.share))
        weights, at = torch.topk(self.router(x).squeeze(-1), k, dim=1)
        at, order = torch.sort(at, dim=1)
        weights = torch.gather(weights, 1, order)
        picked = torch.gather(x, 1, at.unsqueeze(-1).expand(-1, -1, d))
        done = self.block(picked, src_mask=nn.Transformer.generate_square_subsequent_mask(k))
        return x.scatter_add(1, at.unsqueeze(-1).expand(-1, -1, d), done * weights.sigmoid().unsqueeze(-1))


@case("x.0", "x.1")
def tokens_picked_for_a_block():
    return Depths(), (randn(2, 9, 8),), (randn(1, 14, 8),), (randn(3, 5, 8),)


class Blocks(nn.Module):
    """Each block of queries sees its own keys and those of its neighbours."""

    def __init__(self, width: int = 8, block: int = 4) -> None:
        super().__init__()
        self.block, self.qkv = block, nn.Linear(width, 3 * width)

    def around(self, x: Tensor) -> Tensor:
        padded = F.pad(x, (0, 0, 0, 0, 1, 1))
        return torch.cat([padded[:, :-2], padded[:, 1:-1], padded[:, 2:]], dim=2)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        b, n, d = x.shape
        extra = -n % self.block
        x, mask = F.pad(x, (0, 0, 0, extra)), F.pad(mask, (0, extra))
        q, k, v = (t.reshape(b, -1, self.block, d) for t in self.qkv(x).chunk(3, dim=-1))
        seen = self.around(mask.reshape(b, -1, self.block, 1).float()).bool().squeeze(-1)
        scores = torch.einsum("bcqd,bckd->bcqk", q, self.around(k)) / d**0.5
        scores = scores.masked_fill(~seen[:, :, None], -1e9)
        out = torch.einsum("bcqk,bckd->bcqd", scores.softmax(-1), self.around(v))
        return out.reshape(b, n + extra, d)[:, :n]


@case("x.0", "x.1")
def blocks_and_their_neighbours():
    ones = lambda b, n: torch.ones(b, n, dtype=torch.long)  # noqa: E731
    return Blocks(), (randn(2, 10, 8), ones(2, 10)), (randn(1, 16, 8), ones(1, 16)), (randn(3, 5, 8), ones(3, 5))


class Retention(nn.Module):
    """Retention in parallel: decay by distance instead of softmax, scales by head."""

    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.qkvg = heads, nn.Linear(width, 4 * width, bias=False)
        self.register_buffer("gamma", 1 - 2.0 ** (-2 - torch.arange(heads)))
        self.norm, self.out = nn.GroupNorm(heads, width, affine=False), nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v, g = self.qkvg(x).chunk(4, -1)
        split = lambda t: t.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # noqa: E731
        steps = torch.arange(n).float()
        gap = steps[:, None] - steps[None]
        decay = torch.where(gap >= 0, self.gamma[:, None, None] ** gap.clamp(min=0), torch.zeros(()))
        decay = decay / decay.sum(-1, keepdim=True).sqrt()
        scores = split(q) @ split(k).mT * decay
        scores = scores / scores.detach().sum(-1, keepdim=True).abs().clamp(min=1)
        y = (scores @ split(v)).transpose(1, 2).reshape(b * n, d)
        return self.out(F.silu(g) * self.norm(y).view(b, n, d))


@case("x.0", "x.1")
def retention_by_distance():
    return Retention(), (randn(2, 7, 8),), (randn(3, 12, 8),), (randn(1, 4, 8),)
