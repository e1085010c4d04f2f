"""Point clouds: neighbours that are looked up, balls, transforms, pillars, voxels."""

from __future__ import annotations

import torch
from torch import Tensor, nn, rand, randn

from tests.export_cases.case import case


class Transformed(nn.Module):
    """A transform is predicted and applied before each point is read by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.small = nn.Sequential(nn.Conv1d(3, 8, 1), nn.BatchNorm1d(8), nn.ReLU())
        self.matrix = nn.Linear(8, 9)
        self.body, self.head = nn.Sequential(nn.Conv1d(3, 8, 1), nn.ReLU(), nn.Conv1d(8, 16, 1)), nn.Linear(24, 4)

    def forward(self, points: Tensor) -> tuple[Tensor, Tensor]:
        b, _, n = points.size()
        pooled = torch.max(self.small(points), 2, keepdim=True)[0].view(-1, 8)
        matrix = self.matrix(pooled) + torch.eye(3).flatten().unsqueeze(0).repeat(b, 1)
        matrix = matrix.view(-1, 3, 3)
        x = torch.bmm(points.transpose(2, 1), matrix).transpose(2, 1)
        local = self.body(x)
        whole = torch.max(local, 2, keepdim=True)[0].view(-1, 16, 1).repeat(1, 1, n)
        return self.head(torch.cat([self.small(x), whole], 1).transpose(1, 2)), matrix


@case("points.0", "points.2")
def points_after_a_transform():
    return Transformed(), (randn(2, 3, 10),), (randn(1, 3, 17),), (randn(3, 3, 6),)


class EdgeConvolution(nn.Module):
    """Features of the nearest neighbours, looked up in one table of all clouds."""

    def __init__(self, k: int = 4) -> None:
        super().__init__()
        self.k, self.net = k, nn.Sequential(nn.Conv2d(6, 8, 1, bias=False), nn.BatchNorm2d(8), nn.LeakyReLU(0.2))

    def forward(self, x: Tensor) -> Tensor:
        b, c, n = x.shape
        inner = -2 * torch.matmul(x.transpose(2, 1), x)
        square = torch.sum(x**2, dim=1, keepdim=True)
        nearest = (-square - inner - square.transpose(2, 1)).topk(k=self.k, dim=-1)[1]
        nearest = (nearest + torch.arange(0, b).view(-1, 1, 1) * n).view(-1)
        flat = x.transpose(2, 1).contiguous()
        neighbours = flat.view(b * n, -1)[nearest, :].view(b, n, self.k, c)
        centre = flat.view(b, n, 1, c).repeat(1, 1, self.k, 1)
        edges = torch.cat((neighbours - centre, centre), dim=3).permute(0, 3, 1, 2).contiguous()
        return self.net(edges).max(dim=-1, keepdim=False)[0]


@case("x.0", "x.2")
def edges_to_the_nearest():
    return EdgeConvolution(), (randn(2, 3, 9),), (randn(1, 3, 14),), (randn(3, 3, 6),)


class Balls(nn.Module):
    """Points within a ball around centres; where there are too few, the first is repeated."""

    def __init__(self, radius: float = 0.5, count: int = 4) -> None:
        super().__init__()
        self.radius, self.count, self.net = radius, count, nn.Linear(3, 6)

    def forward(self, points: Tensor, centres: Tensor) -> Tensor:
        b, n, _ = points.shape
        s = centres.shape[1]
        group = torch.arange(n, dtype=torch.long).view(1, 1, n).repeat([b, s, 1])
        group[torch.cdist(centres, points) > self.radius] = n
        group = group.sort(dim=-1)[0][:, :, : self.count]
        first = group[:, :, 0].view(b, s, 1).repeat([1, 1, self.count])
        mask = group == n
        group[mask] = first[mask]
        rows = torch.arange(b).view(b, 1, 1).expand(b, s, self.count)
        return self.net(points[rows, group] - centres[:, :, None]).relu().max(2).values


@case("points.0", "points.1", "centres.0", "centres.1")
def groups_within_a_ball():
    def call(b: int, n: int, s: int) -> tuple[Tensor, Tensor]:
        points = rand(b, n, 3)
        return points, points[:, :s].clone()

    return Balls(), call(2, 10, 3), call(1, 16, 5), call(3, 7, 2)


class Pillars(nn.Module):
    """Points of a scene gathered into the cells of a grid seen from above, then convolved."""

    def __init__(self, size: int = 8) -> None:
        super().__init__()
        self.size, self.embed, self.net = size, nn.Linear(4, 5), nn.Conv2d(5, 3, 3, padding=1)

    def forward(self, points: Tensor) -> Tensor:
        cells = (points[:, :2] * self.size).long().clamp(0, self.size - 1)
        inside = ((points[:, :2] >= 0) & (points[:, :2] < 1)).all(-1)
        cells, kept = cells[inside], points[inside]
        at = cells[:, 1] * self.size + cells[:, 0]
        canvas = torch.zeros(5, self.size * self.size)
        canvas = canvas.scatter_reduce(1, at.expand(5, -1), self.embed(kept).T, "amax", include_self=False)
        return self.net(canvas.view(1, 5, self.size, self.size))


@case("points.0")
def pillars_seen_from_above():
    return Pillars(), (randn(20, 4) * 0.6 + 0.4,), (randn(33, 4) * 0.6 + 0.4,)


class Voxels(nn.Module):
    """The mean of the points in each cell that has any, and which cells these are."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 4)

    def forward(self, points: Tensor) -> tuple[Tensor, Tensor]:
        cells = torch.floor(points / 0.25).long()
        which, inverse, counts = torch.unique(cells, dim=0, return_inverse=True, return_counts=True)
        sums = torch.zeros(which.shape[0], 4).index_add(0, inverse, self.net(points))
        return sums / counts.unsqueeze(-1), which


@case("points.0")
def voxels_with_points_in_them():
    return Voxels(), (rand(14, 3),), (rand(25, 3),)
