"""Graphs as lists of edges: degrees, distances, pooling that asks again, coarser graphs, labels that spread."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randint, randn

from tests.export_cases.case import case


def _edges(nodes: int, edges: int) -> Tensor:
    return torch.stack([randint(0, nodes, (edges,)), randint(0, nodes, (edges,))])


class ManyAggregations(nn.Module):
    """Mean, maximum, minimum and deviation of the neighbours, scaled by degree."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.pre, self.post = nn.Linear(2 * width, width), nn.Linear(13 * width, width)
        self.register_buffer("average", torch.tensor(1.2))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        row, col = edge_index
        n, w = x.size(0), x.size(1)
        h = self.pre(torch.cat([x[col], x[row]], dim=-1))
        deg = torch.zeros(n, dtype=x.dtype).scatter_add_(0, col, torch.ones_like(col, dtype=x.dtype))
        safe = deg.clamp(min=1)[:, None]
        mean = torch.zeros(n, w).index_add_(0, col, h) / safe
        squares = torch.zeros(n, w).index_add_(0, col, h * h) / safe
        std = torch.sqrt(torch.relu(squares - mean * mean) + 1e-5)
        index = col[:, None].expand_as(h)
        top = torch.full((n, w), 0.0).scatter_reduce_(0, index, h, "amax", include_self=False)
        low = torch.full((n, w), 0.0).scatter_reduce_(0, index, h, "amin", include_self=False)
        out = torch.cat([mean, top, low, std], -1)
        scale = torch.log(deg + 1)[:, None]
        out = torch.cat([out, out * scale / self.average, out * self.average / scale.clamp(min=math.log(2))], -1)
        return self.post(torch.cat([x, out], -1))


@case("x.0", "edge_index.1")
def neighbours_in_many_ways():
    return ManyAggregations(), (randn(5, 4), _edges(5, 9)), (randn(8, 4), _edges(8, 20)), (randn(3, 4), _edges(3, 4))


class Atoms(nn.Module):
    """Atoms act on each other by their distance, within a cut-off; energy by molecule."""

    def __init__(self, width: int = 6, bases: int = 5, cutoff: float = 3.0) -> None:
        super().__init__()
        self.emb = nn.Embedding(10, width, padding_idx=0)
        self.cutoff = cutoff
        self.register_buffer("centres", torch.linspace(0, cutoff, bases))
        self.filter = nn.Sequential(nn.Linear(bases, width), nn.Softplus(), nn.Linear(width, width))
        self.out = nn.Sequential(nn.Linear(width, 4), nn.Softplus(), nn.Linear(4, 1))

    def forward(self, z: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
        real = z > 0
        d = (pos.unsqueeze(2) - pos.unsqueeze(1)).pow(2).sum(-1).add(1e-9).sqrt()
        pair = real.unsqueeze(2) & real.unsqueeze(1) & ~torch.eye(z.size(1), dtype=torch.bool)
        rbf = torch.exp(-10 * (d.unsqueeze(-1) - self.centres) ** 2)
        cut = 0.5 * (torch.cos(d * math.pi / self.cutoff) + 1) * (d < self.cutoff) * pair
        w = self.filter(rbf) * cut.unsqueeze(-1)
        x = self.emb(z)
        for _ in range(2):
            x = x + torch.einsum("bijf,bjf->bif", w, x)
        atomic = self.out(x).squeeze(-1).masked_fill(~real, 0)
        return atomic.sum(1), torch.where(real, atomic, torch.nan_to_num(atomic))


def _molecules(batch: int, atoms: int) -> tuple[Tensor, Tensor]:
    z = randint(1, 10, (batch, atoms))
    z[0, atoms - 2 :] = 0
    return z, randn(batch, atoms, 3)


@case("z.0", "z.1")
def atoms_within_a_distance():
    return Atoms(), _molecules(2, 5), _molecules(3, 8), _molecules(1, 4)


class AskAgain(nn.Module):
    """A set is read several times by an LSTM that attends to it, graph by graph."""

    def __init__(self, width: int = 4, steps: int = 3) -> None:
        super().__init__()
        self.lstm, self.steps, self.width = nn.LSTMCell(2 * width, width), steps, width

    def forward(self, x: Tensor, batch: Tensor, graphs: Tensor) -> Tensor:
        count = graphs.shape[0]
        q = x.new_zeros(count, 2 * self.width)
        h, c = x.new_zeros(count, self.width), x.new_zeros(count, self.width)
        for _ in range(self.steps):
            h, c = self.lstm(q, (h, c))
            e = (x * h[batch]).sum(-1)
            top = torch.full((count,), float("-inf")).scatter_reduce(0, batch, e, "amax")
            a = (e - top[batch]).exp()
            a = a / (torch.zeros(count).scatter_add(0, batch, a)[batch] + 1e-16)
            r = torch.zeros(count, self.width).index_add(0, batch, a[:, None] * x)
            q = torch.cat([h, r], 1)
        return q + graphs.unsqueeze(1)


@case("x.0", "graphs.0")
def a_set_read_several_times():
    return (
        AskAgain(),
        (randn(7, 4), torch.tensor([0, 0, 0, 1, 1, 1, 1]), rand(2)),
        (randn(5, 4), torch.tensor([0, 1, 1, 2, 2]), rand(3)),
        (randn(9, 4), torch.tensor([0] * 9), rand(1)),
    )


class Coarser(nn.Module):
    """The best nodes make a smaller graph; its result goes back to where the nodes were."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.down, self.bottom, self.up = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.p = nn.Parameter(randn(width))

    def forward(self, adjacency: Tensor, x: Tensor) -> Tensor:
        x = F.elu(self.down(adjacency @ x))
        score = torch.sigmoid(x @ self.p / self.p.norm())
        n = x.shape[0]
        values, at = torch.topk(score, max(2, int(0.6 * n)))
        two = (adjacency @ adjacency).bool().float()
        small = two[at][:, at]
        small = small / small.sum(1, keepdim=True).clamp(min=1)
        y = F.elu(self.bottom(small @ (x[at] * values[:, None])))
        back = x.new_zeros([n, x.shape[1]])
        back[at] = y
        return self.up(back + x)


def _adjacency(n: int) -> Tensor:
    a = (rand(n, n) > 0.5).float()
    return ((a + a.t() + torch.eye(n)) > 0).float()


@case("adjacency.0", "x.0")
def smaller_graph_and_back():
    return Coarser(), (_adjacency(7), randn(7, 4)), (_adjacency(10), randn(10, 4)), (_adjacency(5), randn(5, 4))


class Components(nn.Module):
    """The smallest label spreads until nothing changes: connected parts of a graph."""

    def forward(self, adjacency: Tensor) -> tuple[Tensor, Tensor]:
        n = adjacency.shape[0]
        labels = torch.arange(n)
        linked = (adjacency > 0) | torch.eye(n, dtype=torch.bool)
        while True:
            spread = torch.where(linked, labels.unsqueeze(0), torch.full((n, n), n)).min(dim=1).values
            if torch.equal(spread, labels):
                break
            labels = spread
        return labels, (labels == torch.arange(n)).sum()


@case("adjacency.0", "adjacency.1")
def connected_parts():
    def sparse(n: int) -> Tensor:
        a = (rand(n, n) > 0.8).float()
        return a + a.t()

    return Components(), (sparse(6),), (sparse(9),), (sparse(13),)


class ShortestPaths(nn.Module):
    """Distances from a source after as many rounds as there are nodes, and who came before."""

    def forward(self, weights: Tensor, source: Tensor) -> tuple[Tensor, Tensor]:
        n = weights.size(0)
        dist = torch.full((n,), float("inf"))
        dist[source] = 0.0
        before = torch.full((n,), -1, dtype=torch.long)
        for _ in range(n - 1):
            through = dist[:, None] + weights
            best, at = through.min(dim=0)
            better = best < dist
            dist = torch.where(better, best, dist)
            before = torch.where(better, at, before)
        return dist, before


@case("weights.0", "weights.1")
def shortest_paths():
    return (
        ShortestPaths(),
        (rand(6, 6) + 0.1, torch.tensor(2)),
        (rand(9, 9) + 0.1, torch.tensor(0)),
        (rand(4, 4) + 0.1, torch.tensor(3)),
    )
