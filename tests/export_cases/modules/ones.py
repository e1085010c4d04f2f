"""Samples with an axis of size 1: what a capture takes for a constant, or for broadcasting."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


@case("x.0", "x.2", "x.3")
def convolution_at_batch_one():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
    return net, (randn(1, 3, 8, 9),), (randn(4, 3, 12, 10),)


class Causal(nn.Module):
    """Causal attention, except for a single token: the branch of every decode step."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[-2] > 1)


def _qkv(batch: int, tokens: int) -> tuple[Tensor, ...]:
    return tuple(randn(batch, 2, tokens, 4) for _ in range(3))


@case("q.0", "q.2")
def causal_unless_one_token():
    return Causal(), _qkv(2, 1), _qkv(3, 6)


@case("q.0", "q.2")
def causal_when_many_tokens():
    return Causal(), _qkv(2, 5), _qkv(3, 1)


class Squeezed(nn.Module):
    """``squeeze`` drops whatever has size 1."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x).squeeze(-1)


@case("x.0")
def one_logit_squeezed():
    return Squeezed(), (randn(1, 4),), (randn(5, 4),)


class Broadcasting(nn.Module):
    """One row per batch or one for all."""

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        return x + bias


@case("x.0", "x.1")
def broadcast_row():
    return Broadcasting(), (randn(3, 4, 5), randn(1, 1, 5)), (randn(2, 6, 5), randn(1, 1, 5))


class Bert(nn.Module):
    """An encoder with a padding mask, exported at batch 1."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(30, 8), nn.Embedding(40, 8)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        x = self.embed(ids) + self.positions(torch.arange(ids.shape[1]))
        return self.encoder(x, src_key_padding_mask=mask == 0)


def _text(batch: int, length: int) -> tuple[Tensor, Tensor]:
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[0, -1] = 0
    return torch.randint(0, 30, (batch, length)), mask


@case("ids.0", "ids.1", "mask.0", "mask.1")
def encoder_with_padding_at_batch_one():
    return Bert(), _text(1, 6), _text(3, 9)


class Mean(nn.Module):
    """Statistics over the batch, different at batch 1."""

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] == 1:
            return x
        return (x - x.mean(0)) / x.std(0)


@case("x.0")
def standardised_unless_alone():
    return Mean(), (randn(4, 3),), (randn(6, 3),), (randn(1, 3),)


class Greyscale(nn.Module):
    """Grey images become colour."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] == 1:
            x = x.repeat(1, 3, 1, 1)
        return self.conv(x)


@case("x.0", "x.2", "x.3")
def grey_becomes_colour():
    return Greyscale(), (randn(1, 1, 8, 8),), (randn(2, 1, 9, 7),)
