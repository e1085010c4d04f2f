"""What is gathered over rows and neighbours: poolings, attention over edges, losses of pairs and of labels."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randint, randn

from tests.export_cases.case import case


class Batch(NamedTuple):
    """Tokens, and how many of each row count."""

    tokens: Tensor
    lengths: Tensor


class Pooled(NamedTuple):
    """Three ways of seeing a row as one vector."""

    mean: Tensor
    last: Tensor
    top: Tensor


class Pooling(nn.Module):
    """Mean, last and maximum over what is not padding."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(40, 6)

    def forward(self, batch: Batch) -> Pooled:
        x = self.emb(batch.tokens)
        mask = torch.arange(x.size(1))[None, :] < batch.lengths[:, None]
        x = x * mask.unsqueeze(-1)
        mean = x.sum(1) / batch.lengths.clamp_min(1).unsqueeze(1).to(x.dtype)
        last = x.gather(1, (batch.lengths - 1).clamp_min(0).view(-1, 1, 1).expand(-1, 1, x.size(2))).squeeze(1)
        top = x.masked_fill(~mask.unsqueeze(-1), torch.finfo(x.dtype).min).amax(1)
        return Pooled(mean, last, top)


@case("batch.tokens.0", "batch.tokens.1")
def poolings_of_rows():
    return (
        Pooling(),
        (Batch(randint(0, 40, (2, 7)), torch.tensor([7, 3])),),
        (Batch(randint(0, 40, (3, 4)), torch.tensor([4, 1, 2])),),
        (Batch(randint(0, 40, (1, 11)), torch.tensor([9])),),
    )


class Contrastive(nn.Module):
    """The symmetric loss of pairs, with a temperature that is learnt, and the accuracy in percent."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 4), nn.Linear(5, 4)
        self.scale = nn.Parameter(torch.tensor(2.6593))

    def forward(self, pictures: Tensor, texts: Tensor) -> tuple[Tensor, Tensor]:
        a, b = F.normalize(self.a(pictures), dim=-1), F.normalize(self.b(texts), dim=-1)
        logits = self.scale.exp().clamp(max=100) * a @ b.t()
        target = torch.arange(logits.size(0))
        loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2
        accuracy = (logits.argmax(1) == target).float().mean() * 100
        return loss, accuracy


@case("pictures.0")
def contrastive_loss():
    return Contrastive(), (randn(4, 6), randn(4, 5)), (randn(7, 6), randn(7, 5)), (randn(2, 6), randn(2, 5))


class Focal(nn.Module):
    """Focal and dice losses of a segmentation, where some pixels are ignored."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x: Tensor, target: Tensor) -> dict[str, Tensor]:
        logits = self.head(x)
        valid = target != 255
        safe = torch.where(valid, target, 0)
        ce = F.cross_entropy(logits, target, ignore_index=255, reduction="none", label_smoothing=0.1)
        focal = ((1 - torch.exp(-ce)) ** 2 * ce).sum() / valid.sum()
        one_hot = F.one_hot(safe, 4).permute(0, 3, 1, 2) * valid[:, None]
        p = logits.softmax(1) * valid[:, None]
        dice = 1 - (2 * (p * one_hot).sum((0, 2, 3)) + 1) / (p.sum((0, 2, 3)) + one_hot.sum((0, 2, 3)) + 1)
        return {"focal": focal, "dice": dice.mean(), "each": dice}


def _labels(*shape: int) -> Tensor:
    target = randint(0, 4, shape)
    target[..., 0] = 255
    return target


@case("x.0", "x.2", "x.3")
def segmentation_losses():
    return (
        Focal(),
        (randn(2, 3, 6, 8), _labels(2, 6, 8)),
        (randn(1, 3, 5, 4), _labels(1, 5, 4)),
        (randn(3, 3, 9, 7), _labels(3, 9, 7)),
    )


class GraphAttention(nn.Module):
    """Attention over the edges of a graph: a softmax by segments, self-loops added, nodes pooled by graph."""

    def __init__(self, width: int = 6, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.lin = nn.Linear(width, heads * 4, bias=False)
        self.left, self.right = nn.Parameter(randn(heads, 4)), nn.Parameter(randn(heads, 4))

    def forward(self, x: Tensor, edges: Tensor, graph: Tensor) -> Tensor:
        n = x.size(0)
        edges = torch.cat([edges, torch.arange(n).expand(2, n)], 1)
        source, target = edges
        h = self.lin(x).view(n, self.heads, 4)
        a = F.leaky_relu((h * self.left).sum(-1)[source] + (h * self.right).sum(-1)[target], 0.2)
        index = target[:, None].expand_as(a)
        top = torch.full((n, self.heads), float("-inf")).scatter_reduce(0, index, a, "amax")
        e = (a - top[target]).exp()
        total = torch.zeros(n, self.heads).index_add_(0, target, e)
        alpha = e / total[target]
        out = torch.zeros_like(h).index_add_(0, target, h[source] * alpha[..., None]).flatten(1)
        count = int(graph.max()) + 1
        pooled = torch.zeros(count, out.size(1)).scatter_reduce(
            0, graph[:, None].expand_as(out), out, "mean", include_self=False
        )
        return pooled


def _graph(nodes: int, edges: int, graphs: int) -> tuple[Tensor, Tensor, Tensor]:
    graph = torch.arange(nodes) * graphs // nodes
    return randn(nodes, 6), randint(0, nodes, (2, edges)), graph


@case("x.0", "edges.1")
def attention_over_edges():
    return GraphAttention(), _graph(7, 12, 2), _graph(5, 4, 1), _graph(11, 20, 3)
