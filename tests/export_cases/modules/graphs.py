"""Message passing: scatter, segment softmax, neighbours, point clouds."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


def _graph(nodes: int, edges: int, width: int = 4) -> tuple[Tensor, Tensor]:
    return randn(nodes, width), torch.randint(0, nodes, (2, edges))


class Gcn(nn.Module):
    """Kipf's convolution with symmetric normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 3)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        n = x.size(0)
        loops = torch.arange(n)
        source, target = torch.cat([source, loops]), torch.cat([target, loops])
        degree = torch.zeros(n).scatter_add_(0, target, torch.ones(target.size(0)))
        norm = degree.pow(-0.5)
        messages = self.lin(x)[source] * (norm[source] * norm[target]).unsqueeze(-1)
        return torch.zeros(n, 3).index_add_(0, target, messages)


@case("x.0", "edges.1")
def graph_convolution():
    return Gcn(), _graph(4, 6), _graph(7, 11)


class Gat(nn.Module):
    """Attention over the edges of each node: a softmax by segments."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.att = nn.Linear(4, 3), nn.Linear(6, 1)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges[0], edges[1]
        h = self.lin(x)
        e = F.leaky_relu(self.att(torch.cat([h[source], h[target]], -1))).squeeze(-1)
        top = torch.full((x.size(0),), float("-inf")).scatter_reduce(0, target, e, "amax")
        e = torch.exp(e - top[target])
        total = torch.zeros(x.size(0)).scatter_add(0, target, e)
        return torch.zeros(x.size(0), 3).index_add(0, target, h[source] * (e / total[target]).unsqueeze(-1))


@case("x.0", "edges.1")
def graph_attention():
    return Gat(), _graph(4, 6), _graph(7, 11)


class Sage(nn.Module):
    """Means and maxima of neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.own, self.other = nn.Linear(4, 3), nn.Linear(8, 3)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        where = edges[1].unsqueeze(-1).expand(-1, x.size(1))
        mean = torch.zeros_like(x).scatter_reduce(0, where, x[edges[0]], "mean", include_self=False)
        top = torch.zeros_like(x).scatter_reduce(0, where, x[edges[0]], "amax", include_self=False)
        return self.own(x) + self.other(torch.cat([mean, top], 1))


@case("x.0", "edges.1")
def neighbour_means_and_maxima():
    return Sage(), _graph(4, 6), _graph(7, 11)


class GlobalPool(nn.Module):
    """Nodes of several graphs pooled by the graph they belong to."""

    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        graphs = int(batch.max()) + 1
        total = torch.zeros(graphs, x.size(1)).index_add(0, batch, x)
        return total / torch.bincount(batch, minlength=graphs).unsqueeze(1).clamp(min=1)


@case("x.0", "batch.0")
def pool_by_graph():
    return (
        GlobalPool(),
        (randn(5, 3), torch.tensor([0, 0, 1, 1, 1])),
        (randn(7, 3), torch.tensor([0, 0, 1, 2, 2, 3, 3])),
    )


class EdgeConv(nn.Module):
    """DGCNN: the k nearest neighbours in feature space."""

    def __init__(self, k: int = 3) -> None:
        super().__init__()
        self.k, self.net = k, nn.Linear(6, 5)

    def forward(self, points: Tensor) -> Tensor:
        b, n, c = points.shape
        index = torch.cdist(points, points).topk(self.k, largest=False).indices
        flat = (index + torch.arange(b).view(b, 1, 1) * n).view(-1)
        near = points.reshape(b * n, c)[flat].view(b, n, self.k, c)
        centre = points.unsqueeze(2).expand(-1, -1, self.k, -1)
        return self.net(torch.cat([near - centre, centre], -1)).amax(2)


@case("points.0", "points.1")
def nearest_neighbour_convolution():
    return EdgeConv(), (randn(2, 6, 3),), (randn(3, 9, 3),)


class FarthestPoints(nn.Module):
    """PointNet++'s sampling: one point after another."""

    def forward(self, points: Tensor) -> Tensor:
        b, n, _ = points.shape
        chosen = torch.zeros(b, 4, dtype=torch.long)
        distance = torch.full((b, n), 1e10)
        far = torch.zeros(b, dtype=torch.long)
        rows = torch.arange(b)
        for i in range(4):
            chosen[:, i] = far
            gap = ((points - points[rows, far].unsqueeze(1)) ** 2).sum(-1)
            distance = torch.minimum(distance, gap)
            far = distance.argmax(-1)
        return points[rows.unsqueeze(1), chosen]


@case("points.0", "points.1")
def farthest_point_sampling():
    return FarthestPoints(), (randn(2, 8, 3),), (randn(3, 11, 3),)


class Equivariant(nn.Module):
    """EGNN on all pairs, without self-loops."""

    def __init__(self) -> None:
        super().__init__()
        self.edge, self.coordinate = nn.Linear(9, 4), nn.Linear(4, 1)

    def forward(self, h: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        n = h.shape[0]
        pairs = ~torch.eye(n, dtype=torch.bool)
        source, target = pairs.nonzero(as_tuple=True)
        gap = x[source] - x[target]
        m = F.silu(self.edge(torch.cat([h[source], h[target], gap.pow(2).sum(-1, keepdim=True)], -1)))
        return h.index_add(0, source, m), x.index_add(0, source, gap * self.coordinate(m)) / n


@case("h.0", "x.0")
def equivariant_graph_network():
    return Equivariant(), (randn(3, 4), randn(3, 3)), (randn(6, 4), randn(6, 3))


class SparseAdjacency(nn.Module):
    """A sparse matrix product inside."""

    def forward(self, x: Tensor, edges: Tensor, values: Tensor) -> Tensor:
        adjacency = torch.sparse_coo_tensor(edges, values, (x.shape[0], x.shape[0]))
        return torch.sparse.mm(adjacency, x)


@case("x.0", "edges.1", "values.0")
def sparse_adjacency():
    def call(nodes: int, edges: int):
        return randn(nodes, 3), torch.randint(0, nodes, (2, edges)), randn(edges)

    return SparseAdjacency(), call(4, 6), call(6, 9)
