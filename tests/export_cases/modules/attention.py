"""Variants of attention and the blocks around them."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class Grouped(nn.Module):
    """Grouped queries, rotary positions, RMS norms, a gated feed-forward: a Llama block."""

    def __init__(self, width: int = 16, heads: int = 4, shared: int = 2) -> None:
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, width // heads
        self.q, self.kv = nn.Linear(width, width, bias=False), nn.Linear(width, 2 * shared * self.size, bias=False)
        self.out, self.norm1, self.norm2 = nn.Linear(width, width, bias=False), nn.RMSNorm(width), nn.RMSNorm(width)
        self.gate, self.up, self.down = nn.Linear(width, 24), nn.Linear(width, 24), nn.Linear(24, width)

    def _turned(self, x: Tensor) -> Tensor:
        t, d = x.shape[-2:]
        angle = torch.arange(t)[:, None] / 100 ** (torch.arange(0, d, 2) / d)
        cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
        return x * cos + torch.cat([-x[..., d // 2 :], x[..., : d // 2]], -1) * sin

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        y = self.norm1(x)
        q = self._turned(self.q(y).view(b, t, self.heads, -1).transpose(1, 2))
        k, v = (part.view(b, t, self.shared, -1).transpose(1, 2) for part in self.kv(y).chunk(2, -1))
        y = F.scaled_dot_product_attention(q, self._turned(k), v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, -1))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


@case("x.0", "x.1")
def grouped_query_block():
    return Grouped(), (randn(2, 5, 16),), (randn(3, 9, 16),)


class SelfAttention(nn.Module):
    """nn.MultiheadAttention with both kinds of masks, and its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor, padding: Tensor) -> tuple[Tensor, Tensor]:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.attention(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=True)


def _padded(batch: int, length: int) -> tuple[Tensor, Tensor]:
    padding = torch.zeros(batch, length)
    padding[0, -1] = float("-inf")
    return randn(batch, length, 8), padding


@case("x.0", "x.1", "padding.0", "padding.1")
def multihead_with_both_masks():
    return SelfAttention(), _padded(2, 5), _padded(3, 8)


@case("src.0", "src.1", "tgt.0", "tgt.1")
def full_transformer():
    net = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    return net, (randn(2, 5, 8), randn(2, 3, 8)), (randn(3, 7, 8), randn(3, 6, 8))


@case("src.0", "src.1")
def encoder_of_nested_tensors():
    """The fast path of an encoder with padding makes nested tensors."""

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)

        def forward(self, src: Tensor, padding: Tensor) -> Tensor:
            return self.net(src, src_key_padding_mask=padding)

    def call(batch: int, length: int) -> tuple[Tensor, Tensor]:
        return randn(batch, length, 8), torch.zeros(batch, length, dtype=torch.bool)

    return Encoder(), call(2, 5), call(3, 8)


class Shaw(nn.Module):
    """Relative positions by the skewing trick of Music Transformer."""

    def __init__(self, width: int = 8, most: int = 16) -> None:
        super().__init__()
        self.qkv, self.relative, self.most = nn.Linear(width, 3 * width), nn.Parameter(randn(most, width)), most

    def forward(self, x: Tensor) -> Tensor:
        t = x.shape[1]
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ self.relative[self.most - t :].T
        skewed = F.pad(scores, (1, 0)).view(x.shape[0], t + 1, t)[:, 1:]
        scores = (q @ k.transpose(1, 2) + skewed).masked_fill(torch.ones(t, t).triu(1).bool(), float("-inf"))
        return (scores / math.sqrt(8)).softmax(-1) @ v


@case("x.0", "x.1")
def relative_by_skewing():
    return Shaw(), (randn(2, 5, 8),), (randn(3, 9, 8),)


class Linformer(nn.Module):
    """Keys and values projected along the length, which is therefore fixed."""

    def __init__(self, length: int = 6) -> None:
        super().__init__()
        self.qkv, self.e = nn.Linear(8, 24), nn.Linear(length, 3)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        k, v = (self.e(part.transpose(1, 2)).transpose(1, 2) for part in (k, v))
        return (q @ k.transpose(1, 2)).softmax(-1) @ v


@case("x.0")
def projected_length():
    return Linformer(), (randn(2, 6, 8),), (randn(5, 6, 8),)


class Performer(nn.Module):
    """Random features that are fixed at construction."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("features", randn(4, 6))

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        def phi(x: Tensor) -> Tensor:
            return torch.exp(x @ self.features - x.pow(2).sum(-1, keepdim=True) / 2)

        q, k = phi(q), phi(k)
        return torch.einsum("btf,bfd->btd", q, torch.einsum("btf,btd->bfd", k, v)) / (q @ k.sum(1).unsqueeze(-1))


@case("q.0", "q.1", "k.1", "v.1")
def random_feature_attention():
    return (
        Performer(),
        (randn(2, 3, 4), randn(2, 5, 4), randn(2, 5, 4)),
        (randn(3, 6, 4), randn(3, 4, 4), randn(3, 4, 4)),
    )


class Perceiver(nn.Module):
    """Learned queries that read a long input."""

    def __init__(self) -> None:
        super().__init__()
        self.latents, self.read = nn.Parameter(randn(3, 8)), nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        q = self.latents.expand(x.shape[0], -1, -1)
        return self.read(q, x, x, need_weights=False)[0]


@case("x.0", "x.1")
def latent_queries():
    return Perceiver(), (randn(2, 5, 8),), (randn(3, 11, 8),)


class Axial(nn.Module):
    """Attention along rows, then along columns, by einops-like reshapes."""

    def __init__(self) -> None:
        super().__init__()
        self.row, self.column = nn.Linear(4, 12), nn.Linear(4, 12)

    def _attend(self, layer: nn.Module, x: Tensor) -> Tensor:
        q, k, v = layer(x).chunk(3, -1)
        return F.scaled_dot_product_attention(q, k, v)

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        x = self._attend(self.row, x.reshape(b * h, w, c)).reshape(b, h, w, c)
        x = x.permute(0, 2, 1, 3).reshape(b * w, h, c)
        return self._attend(self.column, x).reshape(b, w, h, c).permute(0, 2, 1, 3)


@case("x.0", "x.1", "x.2")
def rows_and_columns():
    return Axial(), (randn(2, 3, 4, 4),), (randn(1, 6, 5, 4),)


class Flex(nn.Module):
    """Segments: tokens see those of their own document only."""

    def forward(self, x: Tensor, document: Tensor) -> Tensor:
        same = document[:, :, None] == document[:, None, :]
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        return F.scaled_dot_product_attention(x, x, x, attn_mask=same & causal)


@case("x.0", "x.1", "document.0", "document.1")
def masked_by_document():
    def call(batch: int, length: int):
        return randn(batch, length, 4), torch.arange(length).div(3, rounding_mode="floor").expand(
            batch, -1
        ).contiguous()

    return Flex(), call(2, 5), call(3, 8)


class Reformer(nn.Module):
    """Locality-sensitive hashing by fixed rotations, sorted buckets."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("turn", randn(4, 2))

    def forward(self, x: Tensor) -> Tensor:
        turned = x @ self.turn
        bucket = torch.cat([turned, -turned], -1).argmax(-1)
        order = (bucket * x.shape[1] + torch.arange(x.shape[1])).argsort(-1)
        ordered = x.gather(1, order.unsqueeze(-1).expand_as(x))
        mixed = ordered + ordered.roll(1, dims=1)
        return torch.zeros_like(x).scatter(1, order.unsqueeze(-1).expand_as(x), mixed)


@case("x.0", "x.1")
def hashed_buckets():
    return Reformer(), (randn(2, 6, 4),), (randn(3, 9, 4),)


class MultiQueryFp32(nn.Module):
    """Softmax in float32 inside of a half-precision block, with soft-capped logits and sinks."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.sink = nn.Linear(8, 24).half(), nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = (q @ k.transpose(1, 2)).float() / math.sqrt(8)
        scores = 30 * torch.tanh(scores / 30)
        scores = torch.cat([scores, self.sink.expand(*scores.shape[:-1], 1)], -1)
        return scores.softmax(-1)[..., :-1].half() @ v


@case("x.0", "x.1")
def softmax_in_single_precision():
    return MultiQueryFp32(), (randn(2, 5, 8).half(),), (randn(3, 9, 8).half(),)
