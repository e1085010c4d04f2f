"""Pieces of models as their authors wrote them: parts of any length, points up to a number, sparse matrices kept."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randint, randn

from tests.export_cases.case import case


class Regulator(nn.Module):
    """Frames held as long as they last, row by row, and filled up to the longest row."""

    def expand(self, frames: Tensor, durations: Tensor) -> Tensor:
        parts = []
        for at, frame in enumerate(frames):
            parts.append(frame.expand(max(int(durations[at].item()), 0), -1))
        return torch.cat(parts, 0)

    def forward(self, x: Tensor, durations: Tensor) -> tuple[Tensor, Tensor]:
        output, lengths = [], []
        for frames, lasting in zip(x, durations, strict=True):
            expanded = self.expand(frames, lasting)
            output.append(expanded)
            lengths.append(expanded.shape[0])
        longest = max(lengths)
        filled = []
        for expanded in output:
            filled.append(F.pad(expanded, (0, 0, 0, longest - expanded.size(0)), "constant", 0.0))
        return torch.stack(filled), torch.LongTensor(lengths)


@case("x.0", "x.1", "x.2")
def frames_held_as_long_as_they_last():
    def call(batch: int, frames: int):
        return randn(batch, frames, 3), randint(0, 4, (batch, frames))

    return Regulator(), call(2, 5), call(3, 7)


class KeyPoints(nn.Module):
    """Points that stand out, at most so many of them, and what the map holds there."""

    def __init__(self) -> None:
        super().__init__()
        self.score, self.describe = nn.Conv2d(1, 17, 4, 4), nn.Conv2d(1, 5, 4, 4)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scores = F.softmax(self.score(image), 1)[:, :-1]
        b, _, h, w = scores.shape
        scores = scores.permute(0, 2, 3, 1).reshape(b, h, w, 4, 4).permute(0, 1, 3, 2, 4).reshape(b, h * 4, w * 4)
        scores = torch.where(scores == F.max_pool2d(scores, 3, 1, 1), scores, torch.zeros_like(scores))
        points = torch.nonzero(scores[0] > 0.02)
        found = scores[0][tuple(points.t())]
        if len(points) > 6:
            found, indices = torch.topk(found, 6, dim=0)
            points = points[indices]
        points = torch.flip(points, [1]).float()
        places = (points - 1.5) / torch.tensor([w * 4 - 2.5, h * 4 - 2.5])[None] * 2 - 1
        features = F.normalize(self.describe(image), dim=1)
        taken = F.grid_sample(features, places.view(1, 1, -1, 2), align_corners=True)
        return points, found, F.normalize(taken.reshape(1, 5, -1), dim=1)[0]


@case("image.2", "image.3")
def points_up_to_a_number():
    return KeyPoints(), (randn(1, 1, 16, 20),), (randn(1, 1, 24, 12),)


class SampledLevels(nn.Module):
    """Deformable attention of several levels, whose heights and widths are in a tensor."""

    def forward(self, value: Tensor, shapes: Tensor, places: Tensor, weights: Tensor) -> Tensor:
        n, _, heads, depth = value.shape
        _, queries, _, levels, points, _ = places.shape
        maps = value.split([int(h * w) for h, w in shapes], dim=1)
        grids, sampled = 2 * places - 1, []
        for level, (h, w) in enumerate(shapes):
            one = maps[level].flatten(2).transpose(1, 2).reshape(n * heads, depth, int(h), int(w))
            grid = grids[:, :, :, level].transpose(1, 2).flatten(0, 1)
            sampled.append(F.grid_sample(one, grid, align_corners=False))
        weights = weights.transpose(1, 2).reshape(n * heads, 1, queries, levels * points)
        made = (torch.stack(sampled, -2).flatten(-2) * weights).sum(-1)
        return made.view(n, heads * depth, queries).transpose(1, 2)


@case("value.0", "value.1", "places.1", "places.3")
def levels_sampled_at_places():
    def call(batch: int, queries: int, *sizes: tuple[int, int]):
        tokens, levels = sum(h * w for h, w in sizes), len(sizes)
        places, weights = rand(batch, queries, 4, levels, 5, 2), rand(batch, queries, 4, levels, 5)
        return randn(batch, tokens, 4, 6), torch.tensor(sizes), places, weights

    return SampledLevels(), call(2, 7, (4, 6), (2, 3), (1, 2)), call(3, 5, (5, 3), (2, 2))


class Sessions(nn.Module):
    """Sessions as graphs, with the edges that lead in beside those that lead out."""

    def __init__(self) -> None:
        super().__init__()
        self.item, self.inward, self.outward = nn.Embedding(10, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.cell = nn.GRUCell(8, 4)

    def forward(self, items: Tensor, edges: Tensor, alias: Tensor) -> Tensor:
        nodes = edges.shape[1]
        hidden = self.item(items)
        inward = torch.matmul(edges[:, :, :nodes], self.inward(hidden))
        outward = torch.matmul(edges[:, :, nodes : 2 * nodes], self.outward(hidden))
        both = torch.cat([inward, outward], 2)
        hidden = self.cell(both.flatten(0, 1), hidden.flatten(0, 1)).view(hidden.shape)
        return torch.stack([hidden[row][alias[row]] for row in range(len(alias))])


@case("items.0", "items.1", "edges.2", "alias.1")
def sessions_with_edges_in_and_out():
    def call(batch: int, nodes: int, length: int):
        return randint(1, 10, (batch, nodes)), rand(batch, nodes, 2 * nodes), randint(0, nodes, (batch, length))

    return Sessions(), call(2, 4, 5), call(3, 5, 7)


class KeptGraph(nn.Module):
    """Users and items joined by a sparse matrix that the module keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(4, 3), nn.Embedding(5, 3)
        bought = (rand(4, 5) > 0.4).float()
        table = torch.zeros(9, 9)
        table[:4, 4:], table[4:, :4] = bought, bought.t()
        scale = table.sum(1).clamp(min=1) ** -0.5
        self.register_buffer("graph", (scale[:, None] * table * scale).to_sparse())

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        nodes = torch.cat([self.users.weight, self.items.weight])
        layers = [nodes]
        for _ in range(2):
            nodes = torch.sparse.mm(self.graph, nodes)
            layers.append(nodes)
        of_users, of_items = torch.split(torch.stack(layers, 1).mean(1), [4, 5])
        return (of_users[users] * of_items[items]).sum(1)


@case("users.0")
def a_graph_that_is_kept():
    def call(pairs: int):
        return randint(0, 4, (pairs,)), randint(0, 5, (pairs,))

    return KeptGraph(), call(6), call(9)


class TwoViews(nn.Module):
    """Two views of each picture are alike, and unlike all others."""

    def forward(self, one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
        n = one.size(0)
        views = F.normalize(torch.cat([one, other]), dim=1)
        alike = views @ views.T / 0.5
        positive = torch.cat([torch.diag(alike, n), torch.diag(alike, -n)])
        others = ~torch.eye(2 * n, dtype=torch.bool)
        rest = alike[others].view(2 * n, -1)
        return (rest.logsumexp(1) - positive).mean(), rest


@case("one.0", "one.1")
def contrast_of_two_views():
    return TwoViews(), (randn(3, 4), randn(3, 4)), (randn(5, 6), randn(5, 6))


class RelativePlaces(nn.Module):
    """Attention over a map, with a table of relative places that is resized to its height and width."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.rows, self.columns = nn.Parameter(randn(9, 4)), nn.Parameter(randn(9, 4))

    def places(self, q: int, k: int, table: Tensor) -> Tensor:
        most = int(2 * max(q, k) - 1)
        if table.shape[0] != most:
            resized = F.interpolate(table.reshape(1, table.shape[0], -1).permute(0, 2, 1), size=most, mode="linear")
            resized = resized.reshape(-1, most).permute(1, 0)
        else:
            resized = table
        rows = torch.arange(q)[:, None] * max(k / q, 1.0)
        columns = torch.arange(k)[None, :] * max(q / k, 1.0)
        return resized[((rows - columns) + (k - 1) * max(q / k, 1.0)).long()]

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, _ = x.shape
        qkv = self.qkv(x).reshape(b, h * w, 3, 2, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.reshape(3, b * 2, h * w, -1).unbind(0)
        scores, maps = (q * 0.5) @ k.transpose(-2, -1), q.reshape(b * 2, h, w, 4)
        by_row = torch.einsum("bhwc,hkc->bhwk", maps, self.places(h, h, self.rows))
        by_column = torch.einsum("bhwc,wkc->bhwk", maps, self.places(w, w, self.columns))
        scores = scores.view(b * 2, h, w, h, w) + by_row[:, :, :, :, None] + by_column[:, :, :, None, :]
        made = scores.view(b * 2, h * w, h * w).softmax(-1) @ v
        return made.view(b, 2, h, w, -1).permute(0, 2, 3, 1, 4).reshape(b, h, w, -1)


@case("x.0", "x.1", "x.2")
def relative_places_resized():
    return RelativePlaces(), (randn(2, 5, 6, 8),), (randn(1, 7, 4, 8),)
