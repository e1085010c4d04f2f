"""Graphs as users write them without a library: scatter, segments, batches of graphs, heterogeneous edges."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


def graph(nodes: int, edges: int, width: int = 4) -> tuple[Tensor, Tensor]:
    """Nodes with features, and edges between them."""
    return randn(nodes, width), torch.randint(0, nodes, (2, edges))


class Gin(nn.Module):
    """Sums of neighbours through a network, three layers, read out by graph."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 8), nn.ReLU(), nn.Linear(8, width)) for _ in range(3)
        )
        self.eps = nn.Parameter(torch.zeros(3))

    def forward(self, x: Tensor, edges: Tensor, batch: Tensor) -> Tensor:
        source, target = edges
        for at, layer in enumerate(self.layers):
            summed = torch.zeros_like(x).index_add_(0, target, x[source])
            x = layer((1 + self.eps[at]) * x + summed)
        count = int(batch.max()) + 1
        out = x.new_zeros(count, x.shape[1])
        return out.scatter_add_(0, batch.unsqueeze(1).expand_as(x), x)


@case("x.0", "edges.1")
def isomorphism_network_by_graph():
    def call(nodes, edges, graphs):
        batch = torch.sort(torch.cat([torch.arange(graphs), torch.randint(0, graphs, (nodes - graphs,))])).values
        return (*graph(nodes, edges), batch)

    return Gin(), call(6, 10, 2), call(9, 15, 3)


class EdgeSoftmax(nn.Module):
    """GATv2 with a softmax over the edges of each node."""

    def __init__(self, width: int = 4, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.left, self.right = heads, nn.Linear(width, 6), nn.Linear(width, 6)
        self.attention = nn.Parameter(randn(heads, 3))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        n = x.size(0)
        source, target = edges[0], edges[1]
        sent, taken = self.left(x).view(n, self.heads, 3), self.right(x).view(n, self.heads, 3)
        score = (F.leaky_relu(sent[source] + taken[target], 0.2) * self.attention).sum(-1)
        index = target.unsqueeze(-1).expand_as(score)
        most = torch.full((n, self.heads), float("-inf")).scatter_reduce(0, index, score, "amax")
        weight = (score - most[target]).exp()
        total = torch.zeros(n, self.heads).scatter_add(0, index, weight)
        weight = weight / (total[target] + 1e-16)
        out = torch.zeros(n, self.heads, 3).index_add(0, target, sent[source] * weight.unsqueeze(-1))
        return F.elu(out.flatten(1))


@case("x.0", "edges.1")
def softmax_over_edges():
    return EdgeSoftmax(), graph(5, 9), graph(8, 13)


class Gated(nn.Module):
    """Gated graph network: messages through a GRU cell for some rounds."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.message, self.cell = nn.Linear(width, width), nn.GRUCell(width, width)

    def forward(self, x: Tensor, edges: Tensor, weight: Tensor) -> Tensor:
        for _ in range(3):
            m = self.message(x)[edges[0]] * weight.unsqueeze(-1)
            total = torch.zeros(x.shape[0], x.shape[1]).scatter_add(0, edges[1].unsqueeze(1).expand(-1, 4), m)
            x = self.cell(total, x)
        return x


@case("x.0", "edges.1", "weight.0")
def gated_graph_network():
    return Gated(), (*graph(5, 9), torch.rand(9)), (*graph(7, 12), torch.rand(12))


class Relational(nn.Module):
    """R-GCN: a weight for each relation, edges chosen by a mask."""

    def __init__(self, width: int = 4, relations: int = 3) -> None:
        super().__init__()
        self.weights, self.own = nn.Parameter(randn(relations, width, width)), nn.Linear(width, width)

    def forward(self, x: Tensor, edges: Tensor, kinds: Tensor) -> Tensor:
        out = self.own(x)
        for relation in range(self.weights.shape[0]):
            mine = edges[:, kinds == relation]
            if mine.shape[1] == 0:
                continue
            sent = x[mine[0]] @ self.weights[relation]
            total = torch.zeros_like(out).index_add(0, mine[1], sent)
            degree = torch.zeros(x.shape[0]).index_add(0, mine[1], torch.ones(mine.shape[1]))
            out = out + total / degree.clamp(min=1).unsqueeze(-1)
        return torch.relu(out)


@case("x.0", "edges.1")
def relations_by_masks():
    return (
        Relational(),
        (*graph(5, 9), torch.randint(0, 3, (9,))),
        (*graph(7, 12), torch.randint(0, 2, (12,))),
    )


class Dense(nn.Module):
    """A dense adjacency normalised on both sides, with Laplacian eigen-positions left out."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.net = nn.Linear(width, 5)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        n = adjacency.size(-1)
        adjacency = adjacency + torch.eye(n)
        scale = adjacency.sum(-1).clamp(min=1).pow(-0.5)
        return scale.unsqueeze(-1) * adjacency * scale.unsqueeze(-2) @ self.net(x)


@case("x.0", "x.1")
def dense_normalised_adjacency():
    return (
        Dense(),
        (randn(2, 5, 4), (torch.rand(2, 5, 5) > 0.5).float()),
        (
            randn(3, 7, 4),
            (torch.rand(3, 7, 7) > 0.5).float(),
        ),
    )


class Radius(nn.Module):
    """A point cloud: edges within a radius found by distances, then convolved."""

    def __init__(self) -> None:
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(8, 6), nn.SiLU(), nn.Linear(6, 3))
        self.register_buffer("centres", torch.linspace(0, 2, 8))

    def forward(self, features: Tensor, position: Tensor) -> Tensor:
        distance = torch.cdist(position, position)
        near = (distance < 1.5) & ~torch.eye(position.shape[0], dtype=torch.bool)
        source, target = near.nonzero(as_tuple=True)
        length = (position[source] - position[target]).norm(dim=-1)
        weight = self.filter(torch.exp(-10 * (length.unsqueeze(-1) - self.centres) ** 2))
        return torch.zeros_like(features).index_add(0, target, features[source] * weight)


@case("features.0", "position.0")
def edges_within_a_radius():
    return Radius(), (randn(5, 3), randn(5, 3)), (randn(8, 3), randn(8, 3))


class Padded(nn.Module):
    """A flat batch of graphs made dense: each graph's nodes in a row, padded."""

    def forward(self, x: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
        graphs = int(batch.max()) + 1
        counts = torch.zeros(graphs, dtype=torch.long).scatter_add(0, batch, torch.ones_like(batch))
        start = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        most = int(counts.max())
        place = torch.arange(batch.shape[0]) - start[batch] + batch * most
        out = x.new_zeros(graphs * most, x.shape[1])
        out[place] = x
        mask = torch.zeros(graphs * most, dtype=torch.bool)
        mask[place] = True
        return out.view(graphs, most, -1), mask.view(graphs, most)


@case("x.0", "batch.0")
def dense_batch_of_graphs():
    return (
        Padded(),
        (randn(6, 4), torch.tensor([0, 0, 0, 1, 1, 1])),
        (
            randn(9, 4),
            torch.tensor([0, 0, 1, 1, 1, 1, 2, 2, 2]),
        ),
    )


class AcrossGraphs(nn.Module):
    """Attention among the nodes of each graph, by torch's own layer, and back."""

    def __init__(self) -> None:
        super().__init__()
        self.dense, self.layer = Padded(), nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True)

    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        rows, mask = self.dense(x, batch)
        return self.layer(rows, src_key_padding_mask=~mask)[mask]


@case("x.0", "batch.0")
def attention_in_dense_batches():
    return (
        AcrossGraphs(),
        (randn(6, 4), torch.tensor([0, 0, 0, 1, 1, 1])),
        (randn(9, 4), torch.tensor([0, 0, 1, 1, 1, 1, 2, 2, 2])),
        (randn(1, 4), torch.tensor([0])),
    )


class VirtualNode(nn.Module):
    """Edges are extended by loops and a virtual node; degrees by bincount."""

    def __init__(self) -> None:
        super().__init__()
        self.virtual, self.net = nn.Parameter(randn(1, 4)), nn.Linear(4, 4)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        n = x.shape[0]
        x = torch.cat([x, self.virtual])
        loops = torch.arange(n + 1).repeat(2, 1)
        star = torch.stack([torch.arange(n), torch.full((n,), n)])
        edges = torch.cat([edges, loops, star, star.flip(0)], 1)
        degree = torch.bincount(edges[1], minlength=n + 1).float()
        scale = degree.rsqrt()
        weight = scale[edges[0]] * scale[edges[1]]
        y = torch.zeros_like(x).index_add(0, edges[1], self.net(x)[edges[0]] * weight.unsqueeze(1))
        return y[:n]


@case("x.0", "edges.1")
def virtual_node():
    return VirtualNode(), graph(5, 9), graph(8, 11)


class Aggregation(nn.Module):
    """A part that counts the graphs around its ``forward``, and says more of errors in it."""

    def __call__(self, x: Tensor, index: Tensor, groups: int | None = None) -> Tensor:
        if groups is None:
            groups = int(index.max()) + 1 if index.numel() > 0 else 0
        try:
            return super().__call__(x, index, groups)
        except (IndexError, RuntimeError) as error:
            if groups <= int(index.max()):
                raise ValueError(f"there are more than {groups} groups") from error
            raise

    def forward(self, x: Tensor, index: Tensor, groups: int) -> Tensor:
        return x.new_zeros(groups, x.shape[1]).index_add(0, index, x)


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin, self.sums = nn.Linear(4, 3), Aggregation()

    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return self.lin(self.sums(x, batch))


@case("x.0")
def graphs_are_counted_around_forward():
    return Counting(), *_three_batches()


class WithTrash(nn.Module):
    """A dense batch whose last row takes what does not fit, and is cut off; attention in it, and back to the nodes."""

    def __init__(self, *, attends: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True) if attends else None

    def forward(self, x: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
        groups = int(batch.max()) + 1
        counts = torch.zeros(groups, dtype=torch.long).index_add(0, batch, torch.ones_like(batch))
        longest = int(counts.max())
        starts = counts.new_empty(groups + 1)
        starts.narrow(0, 0, 1).zero_()
        torch.cumsum(counts, 0, out=starts.narrow(0, 1, groups))
        within = torch.arange(batch.shape[0]) - starts[batch]
        at = torch.where(within < longest, within + batch * longest, groups * longest)
        out = torch.as_tensor(0.0, dtype=x.dtype).repeat([groups * longest + 1, *x.shape[1:]])
        out[at] = x
        full = torch.zeros(groups * longest + 1, dtype=torch.bool)
        full[at] = 1
        out = out[: groups * longest].view([groups, longest, *x.shape[1:]])
        mask = full[: groups * longest].view(groups, longest)
        if self.attention is None:
            return out.softmax(1), mask
        return self.attention(out, out, out, key_padding_mask=~mask, need_weights=False)[0][mask], mask


def _three_batches() -> tuple[tuple[Tensor, Tensor], ...]:
    return (
        (randn(5, 4), torch.tensor([0, 0, 1, 1, 1])),
        (randn(7, 4), torch.tensor([0, 1, 1, 2, 2, 3, 3])),
        (randn(3, 4), torch.tensor([0, 0, 0])),
    )


@case("x.0")
def dense_batch_with_a_row_for_the_rest():
    return WithTrash(attends=False), *_three_batches()


@case("x.0")
def attention_without_the_row_for_the_rest():
    return WithTrash(attends=True), *_three_batches()
