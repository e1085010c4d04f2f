"""What is looked up: hashed pieces of text, codes, experts, the calendar, a bank of examples."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randint, randn

from tests.export_cases.case import case


class Bytes(nn.Module):
    """Bytes hashed as n-grams into an embedding, averaged by word."""

    def __init__(self, n: int = 3, buckets: int = 50) -> None:
        super().__init__()
        self.n, self.buckets = n, buckets
        self.emb = nn.Embedding(buckets, 6)
        self.out = nn.Linear(6, 2)

    def forward(self, text: Tensor) -> Tensor:
        codes = text.long()
        grams = codes.unfold(1, self.n, 1)
        powers = 257 ** torch.arange(self.n)
        ids = (grams * powers).sum(-1) % self.buckets
        blank = (grams == 32).any(-1)
        x = self.emb(ids) * ~blank[..., None]
        return self.out(x.sum(1) / (~blank).sum(1, keepdim=True).clamp(min=1))


@case("text.0", "text.1")
def hashed_ngrams():
    def text(b, t):
        return (randint(30, 100, (b, t), dtype=torch.uint8),)

    return Bytes(), text(2, 12), text(1, 7), text(3, 20)


class Quantiser(nn.Module):
    """Residual vector quantisation: codes of several books, what they decode to, and the commitment."""

    def __init__(self, books: int = 3, codes: int = 8, width: int = 4) -> None:
        super().__init__()
        self.books = nn.ParameterList([nn.Parameter(randn(codes, width)) for _ in range(books)])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rest, codes, decoded, loss = x.transpose(1, 2), [], 0.0, 0.0
        for book in self.books:
            flat = rest.reshape(-1, book.size(1))
            d = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ book.t() + book.pow(2).sum(1)
            index = d.argmin(1).view(rest.shape[:-1])
            q = F.embedding(index, book)
            loss = loss + F.mse_loss(q.detach(), rest)
            q = rest + (q - rest).detach()
            rest, decoded = rest - q, decoded + q
            codes.append(index)
        return torch.stack(codes), decoded.transpose(1, 2), loss


@case("x.0", "x.2")
def residual_quantiser():
    return Quantiser(), (randn(2, 4, 9),), (randn(1, 4, 5),), (randn(3, 4, 16),)


class Experts(nn.Module):
    """The two best experts of every token, each run on its tokens alone, with a loss of balance."""

    def __init__(self, width: int = 6, experts: int = 4) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 8), nn.GELU(), nn.Linear(8, width)) for _ in range(experts)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        flat = x.reshape(-1, x.size(-1))
        p = self.gate(flat).softmax(-1)
        weights, chosen = p.topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            token, slot = torch.where(chosen == i)
            if token.numel() == 0:
                continue
            out[token] += weights[token, slot, None] * expert(flat[token])
        share = F.one_hot(chosen, len(self.experts)).float().mean((0, 1))
        return out.view_as(x), (share * p.mean(0)).sum() * len(self.experts)


@case("x.0", "x.1")
def two_best_experts():
    return Experts(), (randn(2, 5, 6),), (randn(1, 8, 6),), (randn(3, 3, 6),)


class Calendar(nn.Module):
    """Seconds since an epoch become sines, one embedding for each part of the date, and a forecast."""

    def __init__(self) -> None:
        super().__init__()
        self.hour, self.day = nn.Embedding(24, 3), nn.Embedding(7, 3)
        self.out = nn.Linear(11, 1)

    def forward(self, seconds: Tensor, values: Tensor) -> Tensor:
        hours = torch.div(seconds, 3600, rounding_mode="floor")
        day = torch.div(hours, 24, rounding_mode="trunc") % 7
        phase = (seconds % 86400).double() / 86400 * 2 * math.pi
        gap = torch.diff(seconds, dim=1, prepend=seconds[:, :1]).clamp(max=7200).float() / 3600
        smooth = values.float().cumsum(1) / torch.arange(1, values.size(1) + 1)
        x = torch.cat(
            [
                self.hour(hours % 24),
                self.day(day),
                torch.stack([phase.sin(), phase.cos()], -1).float(),
                gap[..., None],
                smooth[..., None],
                values.float()[..., None],
            ],
            -1,
        )
        return self.out(x).squeeze(-1)


@case("seconds.0", "seconds.1")
def features_of_a_calendar():
    def inputs(b, t):
        return randint(0, 10**9, (b, t)).sort(1).values, randn(b, t, dtype=torch.float16)

    return Calendar(), inputs(2, 6), inputs(1, 9), inputs(4, 3)


class Retrieval(nn.Module):
    """Queries against a bank: chunks of the bank one after another, the best merged on the way."""

    def __init__(self, size: int = 23, chunk: int = 8, k: int = 3) -> None:
        super().__init__()
        self.chunk, self.k = chunk, k
        self.register_buffer("bank", F.normalize(randn(size, 6), dim=1))

    def forward(self, query: Tensor, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        query = F.normalize(query, dim=-1)
        best = query.new_full((query.size(0), self.k), -math.inf)
        ids = torch.full((query.size(0), self.k), -1)
        for start in range(0, self.bank.size(0), self.chunk):
            s = query @ self.bank[start : start + self.chunk].T
            if allowed is not None:
                s = s.masked_fill(~allowed[:, start : start + self.chunk], -math.inf)
            both = torch.cat([best, s], 1)
            names = torch.cat([ids, torch.arange(start, start + s.size(1)).expand(s.shape)], 1)
            best, index = both.topk(self.k, 1)
            ids = names.gather(1, index)
        return best, ids


@case("query.0")
def best_of_a_bank():
    return (
        Retrieval(),
        (randn(3, 6), rand(3, 23) > 0.3),
        (randn(1, 6), rand(1, 23) > 0.3),
        (randn(5, 6), rand(5, 23) > 0.3),
    )
