"""Generation inside of forward: greedy, beam search, top-k, caches that are written into."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class Lm(nn.Module):
    """The smallest language model."""

    def __init__(self, vocabulary: int = 12, width: int = 8) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.cell = nn.GRUCell(width, width)

    def step(self, token: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        h = self.cell(self.embed(token), h)
        return self.head(h), h


class Greedy(Lm):
    """A fixed number of greedy steps."""

    def forward(self, token: Tensor) -> Tensor:
        h, out = torch.zeros(token.shape[0], 8), []
        for _ in range(6):
            logits, h = self.step(token, h)
            token = logits.argmax(-1)
            out.append(token)
        return torch.stack(out, 1)


@case("token.0")
def greedy_steps():
    return Greedy(), (torch.randint(0, 12, (2,)),), (torch.randint(0, 12, (5,)),)


class UntilEnd(Lm):
    """Greedy until every sequence has ended."""

    def forward(self, token: Tensor) -> Tensor:
        h = torch.zeros(token.shape[0], 8)
        done, out = torch.zeros_like(token, dtype=torch.bool), [token]
        while not done.all() and len(out) < 9:
            logits, h = self.step(token, h)
            token = torch.where(done, 0, logits.argmax(-1))
            done = done | (token == 3)
            out.append(token)
        return torch.stack(out, 1)


@case("token.0")
def greedy_until_the_end():
    return UntilEnd(), (torch.randint(0, 12, (2,)),), (torch.randint(0, 12, (4,)),)


class Beam(Lm):
    """Beam search of width three."""

    def forward(self, token: Tensor) -> tuple[Tensor, Tensor]:
        batch, width = token.shape[0], 3
        h = torch.zeros(batch * width, 8)
        scores = torch.tensor([0.0, -1e9, -1e9]).repeat(batch, 1)
        tokens = token.repeat_interleave(width)
        paths = tokens.view(batch, width, 1)
        for _ in range(4):
            logits, h = self.step(tokens, h)
            total = scores.unsqueeze(-1) + logits.log_softmax(-1).view(batch, width, -1)
            scores, flat = total.view(batch, -1).topk(width)
            beam, word = torch.div(flat, 12, rounding_mode="floor"), flat % 12
            h = h.view(batch, width, -1).gather(1, beam.unsqueeze(-1).expand(-1, -1, 8)).reshape(-1, 8)
            paths = torch.cat([paths.gather(1, beam.unsqueeze(-1).expand_as(paths)), word.unsqueeze(-1)], -1)
            tokens = word.reshape(-1)
        return paths, scores


@case("token.0")
def beam_search():
    return Beam(), (torch.randint(0, 12, (2,)),), (torch.randint(0, 12, (4,)),)


class TopK(nn.Module):
    """Logits with all but the best k, and all beyond a mass of p, taken away."""

    def forward(self, logits: Tensor) -> Tensor:
        kth = logits.topk(4, -1).values[..., -1:]
        logits = logits.masked_fill(logits < kth, float("-inf"))
        ordered, order = logits.sort(descending=True)
        beyond = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1) > 0.8
        return logits.masked_fill(beyond.scatter(-1, order, beyond), float("-inf")).softmax(-1)


@case("logits.0")
def top_k_and_top_p():
    return TopK(), (randn(2, 10),), (randn(5, 10),)


class StaticCache(nn.Module):
    """A cache of a fixed size, handed in and out, written at a position."""

    def forward(self, k: Tensor, cache: Tensor, position: Tensor) -> Tensor:
        return cache.index_copy(2, position, k)


@case("k.0", "cache.0", "cache.2")
def static_cache_written_at_positions():
    return (
        StaticCache(),
        (randn(2, 2, 3, 4), torch.zeros(2, 2, 8, 4), torch.arange(3)),
        (randn(3, 2, 2, 4), torch.zeros(3, 2, 11, 4), torch.arange(4, 6)),
    )


class SliceCache(nn.Module):
    """A cache written by slices at a position that is a tensor."""

    def forward(self, k: Tensor, cache: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
        cache = cache.clone()
        rows = start + torch.arange(k.shape[1])
        cache[:, rows] = k
        return cache, cache.sum(1)


@case("k.0", "k.1", "cache.1")
def cache_assigned_by_rows():
    return (
        SliceCache(),
        (randn(2, 3, 4), torch.zeros(2, 8, 4), torch.tensor(2)),
        (randn(1, 2, 4), torch.zeros(1, 9, 4), torch.tensor(5)),
    )


class Transducer(nn.Module):
    """The joint network of a transducer: every frame with every label."""

    def __init__(self) -> None:
        super().__init__()
        self.joint = nn.Linear(4, 6)

    def forward(self, audio: Tensor, text: Tensor) -> Tensor:
        return self.joint(torch.tanh(audio[:, :, None] + text[:, None])).log_softmax(-1)


@case("audio.0", "audio.1", "text.0", "text.1")
def transducer_joint():
    return Transducer(), (randn(2, 5, 4), randn(2, 3, 4)), (randn(3, 7, 4), randn(3, 6, 4))


class CtcGreedy(nn.Module):
    """Best path of CTC: repeats and blanks become -1."""

    def forward(self, logits: Tensor) -> Tensor:
        best = logits.argmax(-1)
        previous = F.pad(best[:, :-1], (1, 0), value=-1)
        return torch.where((best == previous) | (best == 0), -1, best)


@case("logits.0", "logits.1")
def ctc_best_path():
    return CtcGreedy(), (randn(2, 6, 5),), (randn(3, 9, 5),)


class AutoregressivePixels(nn.Module):
    """PixelCNN's masked convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        mask = torch.ones(3, 3)
        mask[1, 1:] = 0
        mask[2] = 0
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.conv.weight * self.mask, self.conv.bias, padding=1)


@case("x.0", "x.2", "x.3")
def masked_convolution():
    return AutoregressivePixels(), (randn(2, 1, 6, 7),), (randn(1, 1, 9, 5),)
