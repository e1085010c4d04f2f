"""Dynamic programmes: CRFs, Viterbi, alignment, dynamic time warping, soft sorting."""

from __future__ import annotations

import torch
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class Crf(nn.Module):
    """The log partition function of a linear chain."""

    def __init__(self, tags: int = 4) -> None:
        super().__init__()
        self.transitions = nn.Parameter(torch.randn(tags, tags))

    def forward(self, emissions: Tensor, mask: Tensor) -> Tensor:
        alpha = emissions[:, 0]
        for t in range(1, emissions.shape[1]):
            scores = alpha.unsqueeze(2) + self.transitions + emissions[:, t].unsqueeze(1)
            alpha = torch.where(mask[:, t].unsqueeze(1), torch.logsumexp(scores, dim=1), alpha)
        return torch.logsumexp(alpha, dim=1)


@case("emissions.0", "emissions.1", "mask.0", "mask.1")
def crf_partition():
    def call(batch: int, length: int) -> tuple[Tensor, Tensor]:
        return randn(batch, length, 4), torch.ones(batch, length, dtype=torch.bool)

    return Crf(), call(2, 5), call(3, 8)


class Viterbi(Crf):
    """The best path, traced back."""

    def forward(self, emissions: Tensor) -> tuple[Tensor, Tensor]:
        score, history = emissions[:, 0], []
        for t in range(1, emissions.shape[1]):
            best, where = (score.unsqueeze(2) + self.transitions).max(1)
            score = best + emissions[:, t]
            history.append(where)
        value, tag = score.max(1)
        path = [tag]
        for where in reversed(history):
            tag = where.gather(1, tag.unsqueeze(1)).squeeze(1)
            path.append(tag)
        return torch.stack(path[::-1], 1), value


@case("emissions.0", "emissions.1")
def viterbi_path():
    return Viterbi(), (randn(2, 5, 4),), (randn(3, 8, 4),)


class Warping(nn.Module):
    """Dynamic time warping, row by row."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        cost = torch.cdist(a, b)
        n, m = cost.shape
        table = torch.full((n + 1, m + 1), float("inf"))
        table[0, 0] = 0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                table[i, j] = cost[i - 1, j - 1] + torch.min(
                    torch.min(table[i - 1, j], table[i, j - 1]), table[i - 1, j - 1]
                )
        return table[n, m]


@case("a.0", "b.0")
def time_warping():
    return Warping(), (randn(3, 2), randn(4, 2)), (randn(5, 2), randn(3, 2))


class Sinkhorn(nn.Module):
    """Optimal transport by alternating normalisation."""

    def forward(self, scores: Tensor) -> Tensor:
        for _ in range(5):
            scores = scores - scores.logsumexp(-1, keepdim=True)
            scores = scores - scores.logsumexp(-2, keepdim=True)
        return scores.exp()


@case("scores.0", "scores.1", "scores.2")
def sinkhorn():
    return Sinkhorn(), (randn(2, 3, 4),), (randn(1, 5, 3),)


class Durations(nn.Module):
    """FastSpeech's length regulator: each phoneme repeated as long as it lasts."""

    def forward(self, x: Tensor, durations: Tensor) -> Tensor:
        return torch.repeat_interleave(x, durations, dim=0)


@case("x.0", "durations.0")
def length_regulator():
    return (
        Durations(),
        (randn(3, 4), torch.tensor([2, 1, 3])),
        (randn(5, 4), torch.tensor([1, 4, 0, 2, 2])),
    )


class DurationMatrix(nn.Module):
    """The same by a matrix of zeros and ones, as VITS does."""

    def forward(self, x: Tensor, durations: Tensor) -> Tensor:
        ends = durations.cumsum(-1)
        frames = torch.arange(int(ends[:, -1].max()))
        path = (frames[None, :, None] < ends[:, None, :]) & (frames[None, :, None] >= (ends - durations)[:, None, :])
        return path.float() @ x


@case("x.0", "x.1", "durations.0", "durations.1")
def durations_by_a_matrix():
    return (
        DurationMatrix(),
        (randn(1, 3, 4), torch.tensor([[2, 1, 3]])),
        (randn(2, 4, 4), torch.tensor([[1, 4, 2, 2], [3, 1, 1, 1]])),
    )
