"""Forecasts of time series: patches, stacks, roll-outs, sparse attention, seasons, wavelets."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class PatchForecast(nn.Module):
    """Each channel by itself: normalised, padded at the end, cut into patches, encoded."""

    def __init__(self, patch: int = 8, stride: int = 4, horizon: int = 6) -> None:
        super().__init__()
        self.patch, self.stride = patch, stride
        self.embed, self.head = nn.Linear(patch, 16), nn.Linear(16, horizon)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)

    def forward(self, series: Tensor) -> Tensor:
        b, _, c = series.shape
        mean = series.mean(1, keepdim=True).detach()
        deviation = torch.sqrt(series.var(1, keepdim=True, unbiased=False) + 1e-5)
        x = ((series - mean) / deviation).permute(0, 2, 1)
        x = F.pad(x, (0, self.stride), "replicate").unfold(-1, self.patch, self.stride)
        n = x.shape[2]
        x = self.encoder(self.embed(x).reshape(b * c, n, -1)).view(b, c, n, -1)
        return self.head(x.mean(2)).transpose(1, 2) * deviation + mean


@case("series.0", "series.1", "series.2")
def patches_of_each_channel():
    return PatchForecast(), (randn(2, 24, 3),), (randn(1, 37, 2),), (randn(4, 16, 5),)


class Stacks(nn.Module):
    """Blocks that take away what they explain; forecasts add up."""

    def __init__(self, past: int = 12, future: int = 5) -> None:
        super().__init__()
        self.past, self.future = past, future
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(past, 16), nn.ReLU(), nn.Linear(16, 8)) for _ in range(3)])
        t = torch.arange(past + future) / past
        self.register_buffer("basis", torch.stack([t**p for p in range(4)]), persistent=False)

    def forward(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        residual, parts = x[:, -self.past :], []
        total = x[:, -1:].repeat(1, self.future)
        for block in self.blocks:
            back, ahead = block(residual).split(4, -1)
            residual = residual - torch.einsum("bp,pt->bt", back, self.basis[:, : self.past])
            parts.append(torch.einsum("bp,pt->bt", ahead, self.basis[:, self.past :]))
            total = total + parts[-1]
        return total, parts


@case("x.0", "x.1")
def stacks_with_a_basis():
    return Stacks(), (randn(3, 12),), (randn(2, 20),), (randn(1, 15),)


class RollOut(nn.Module):
    """Encodes what was, and goes on with its own means; the scale is that of the past."""

    def __init__(self, horizon: int = 4) -> None:
        super().__init__()
        self.horizon = horizon
        self.lstm, self.mean, self.scale = nn.LSTM(3, 8, 2, batch_first=True), nn.Linear(8, 1), nn.Linear(8, 1)

    def forward(self, past: Tensor, covariates: Tensor) -> tuple[Tensor, Tensor]:
        n = past.size(1)
        scale = past.abs().mean(1, keepdim=True).clamp(min=1e-3)
        x = torch.cat([(past / scale).unsqueeze(-1), covariates[:, :n]], -1)
        out, state = self.lstm(x)
        means, deviations = [], []
        for k in range(self.horizon):
            mean, deviation = self.mean(out[:, -1]), F.softplus(self.scale(out[:, -1]))
            means.append(mean)
            deviations.append(deviation)
            out, state = self.lstm(torch.cat([mean, covariates[:, n + k]], -1).unsqueeze(1), state)
        return torch.cat(means, 1) * scale, torch.cat(deviations, 1) * scale


@case("past.0", "past.1", "covariates.0", "covariates.1")
def rolled_out_with_covariates():
    return RollOut(), (randn(2, 6), randn(2, 10, 2)), (randn(3, 9), randn(3, 13, 2))


class SparseQueries(nn.Module):
    """Only the queries that stand out attend; how many depends on the logarithm of the length."""

    def __init__(self, width: int = 8, factor: int = 2) -> None:
        super().__init__()
        self.factor, self.qkv, self.out = factor, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        length = x.shape[1]
        u = min(self.factor * math.ceil(math.log(length)), length)
        scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
        measure = scores.max(-1).values - scores.mean(-1)
        top = measure.topk(u, sorted=False).indices
        batch = torch.arange(x.shape[0])[:, None]
        context = v.mean(1, keepdim=True).expand_as(v).clone()
        context[batch, top] = scores[batch, top].softmax(-1) @ v
        return self.out(context)


@case("x.0", "x.1")
def queries_that_stand_out():
    return SparseQueries(), (randn(2, 12, 8),), (randn(3, 30, 8),), (randn(1, 5, 8),)


class Seasons(nn.Module):
    """Delays of the highest autocorrelation, as many as the logarithm of the length; the series moved by them."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.embed = nn.Linear(3, 6), nn.Linear(3, 6)

    def forward(self, x: Tensor) -> Tensor:
        y = self.embed(x).transpose(1, 2)
        length = y.shape[-1]
        spectrum = torch.fft.rfft(self.query(x).transpose(1, 2), dim=-1)
        correlation = torch.fft.irfft(spectrum * torch.fft.rfft(y, dim=-1).conj(), n=length, dim=-1)
        weights, delays = correlation.mean(1).topk(int(2 * math.log(length)), dim=-1)
        weights = weights.softmax(-1)
        start = torch.arange(length).repeat(y.shape[0], y.shape[1], 1)
        twice, total = y.repeat(1, 1, 2), torch.zeros_like(y)
        for i in range(weights.shape[1]):
            moved = twice.gather(-1, start + delays[:, i, None, None])
            total = total + moved * weights[:, i, None, None]
        return total.transpose(1, 2)


@case("x.0", "x.1")
def seasons_by_autocorrelation():
    return Seasons(), (randn(2, 16, 3),), (randn(1, 40, 3),)


class Wavelets(nn.Module):
    """Halved as long as it can be: details of every level, each weighed by a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.rand(12))

    def forward(self, x: Tensor) -> Tensor:
        total, level = x.new_zeros(x.shape[0]), 0
        while x.shape[-1] > 1:
            if x.shape[-1] % 2:
                x = F.pad(x, (0, 1))
            even, odd = x[..., ::2], x[..., 1::2]
            total = total + self.weights[level] * ((even - odd) / math.sqrt(2)).abs().mean(-1)
            x, level = (even + odd) / math.sqrt(2), level + 1
        return total + x[..., 0]


@case("x.0", "x.1")
def wavelets_until_one_is_left():
    return Wavelets(), (randn(3, 12),), (randn(2, 33),), (randn(1, 8),)


class VariableSelection(nn.Module):
    """Gated residual networks choose among variables; a context may be missing."""

    def __init__(self, variables: int = 3, width: int = 8) -> None:
        super().__init__()
        self.embed = nn.ModuleList([nn.Linear(1, width) for _ in range(variables)])
        self.choose, self.context = nn.Linear(variables * width, variables), nn.Linear(4, variables, bias=False)
        self.gate, self.norm = nn.Linear(width, 2 * width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)

    def forward(self, x: Tensor, static: Tensor | None = None) -> tuple[Tensor, Tensor]:
        each = torch.stack([embed(x[..., i : i + 1]) for i, embed in enumerate(self.embed)], -2)
        logits = self.choose(each.flatten(-2))
        if static is not None:
            logits = logits + self.context(static)[:, None]
        weights = logits.softmax(-1)
        y = self.norm((weights.unsqueeze(-1) * each).sum(-2))
        y = y + F.glu(self.gate(y), -1)
        mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
        return self.attention(y, y, y, attn_mask=mask, need_weights=False)[0], weights


@case("x.0", "x.1", "static.0")
def variables_chosen_with_context():
    return VariableSelection(), (randn(2, 7, 3), randn(2, 4)), (randn(3, 11, 3), randn(3, 4))
