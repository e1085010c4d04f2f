from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built


def bert(
    *, vocabulary: int = 1000, width: int = 64, layers: int = 2, heads: int = 4, positions: int = 128, length: int = 16
) -> Built:
    """BERT-like encoder; BERT base is ``vocabulary=30522, width=768, layers=12, heads=12, positions=512``."""
    module = Bert(vocabulary, width, layers, heads, positions)
    samples = (_padded(vocabulary, 1, length), _padded(vocabulary, 3, length + 4))
    axes = {f"{name}.{axis}" for name in ("input_ids", "attention_mask") for axis in (0, 1)}
    return Built(module, samples, frozenset(axes))


def gpt(
    *, vocabulary: int = 500, width: int = 48, layers: int = 2, heads: int = 4, positions: int = 128, length: int = 16
) -> Built:
    """GPT-like decoder; ``vocabulary=50257, width=768, layers=12, heads=12, positions=1024`` are GPT-2's."""
    module = GPT(vocabulary, width, layers, heads, positions)
    samples = ((torch.randint(vocabulary, (1, length)),), (torch.randint(vocabulary, (3, length + 7)),))
    return Built(module, samples, frozenset({"tokens.0", "tokens.1"}))


def _padded(vocabulary: int, batch: int, length: int) -> tuple[Tensor, Tensor]:
    lengths = torch.randint(length // 2, length + 1, (batch, 1))
    mask = (torch.arange(length) < lengths).long()
    return torch.randint(1, vocabulary, (batch, length)) * mask, mask


class BertLayer(nn.Module):
    """Self-attention over the tokens that are not padding, then a feed-forward block; norms after each."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.output, self.norm1 = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
        self.expand, self.project = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            layer(x).view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        attended = attended.transpose(1, 2).reshape(batch, length, width)
        x = self.norm1(x + self.output(attended))
        return self.norm2(x + self.project(F.gelu(self.expand(x))))


class Bert(nn.Module):
    """Returns the last hidden state and the pooled first token."""

    def __init__(self, vocabulary: int, width: int, layers: int, heads: int, positions: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width, padding_idx=0), nn.Embedding(positions, width)
        self.norm, self.dropout = nn.LayerNorm(width, eps=1e-12), nn.Dropout(0.1)
        self.layers = nn.ModuleList(BertLayer(width, heads) for _ in range(layers))
        self.pooler = nn.Linear(width, width)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        positions = torch.arange(input_ids.size(1), device=input_ids.device)
        x = self.dropout(self.norm(self.tokens(input_ids) + self.positions(positions)))
        mask = attention_mask[:, None, None, :].bool()
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


class CausalSelfAttention(nn.Module):
    """Multi-head attention in which a token sees itself and those before."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.projections, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.size()
        q, k, v = self.projections(x).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        causal = torch.tril(torch.ones(length, length, dtype=torch.bool, device=x.device))
        weights = scores.masked_fill(~causal, float("-inf")).softmax(dim=-1)
        return self.output((weights @ v).transpose(1, 2).contiguous().view(batch, length, width))


class GPTBlock(nn.Module):
    """Pre-norm attention and feed-forward, each added to the stream."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), CausalSelfAttention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class GPT(nn.Module):
    """Logits for the next token at every position; the output layer shares the embedding's weight."""

    def __init__(self, vocabulary: int, width: int, layers: int, heads: int, positions: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(GPTBlock(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        nn.init.normal_(self.tokens.weight, std=0.2)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
