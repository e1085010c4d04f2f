"""Points in space: rotations, points far from one another, points drawn onto a grid."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class Rotations(nn.Module):
    """Rotation vectors as matrices, with the series near zero, applied to points, and back as quaternions."""

    def forward(self, v: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        angle = v.norm(dim=-1, keepdim=True)
        small = angle < 1e-4
        safe = torch.where(small, torch.ones_like(angle), angle)
        s = torch.where(small, 1 - angle**2 / 6, safe.sin() / safe)[..., None]
        c = torch.where(small, 0.5 - angle**2 / 24, (1 - safe.cos()) / safe**2)[..., None]
        zero = torch.zeros_like(v[..., 0])
        x, y, z = v.unbind(-1)
        k = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).view(*v.shape[:-1], 3, 3)
        r = torch.eye(3) + s * k + c * (k @ k)
        moved = torch.einsum("bij,bnj->bni", r, points)
        half = angle / 2
        q = torch.cat([half.cos(), torch.where(small, 0.5 * v, half.sin() * v / safe)], -1)
        return moved, q


@case("v.0", "points.1")
def rotations_of_points():
    v = randn(3, 3)
    v[0] = 0
    return Rotations(), (v, randn(3, 5, 3)), (randn(1, 3), randn(1, 8, 3)), (randn(5, 3), randn(5, 2, 3))


class Farthest(nn.Module):
    """Farthest points are sampled, and the nearest neighbours of each are gathered and pooled."""

    def __init__(self, samples: int = 4, k: int = 3) -> None:
        super().__init__()
        self.samples, self.k = samples, k
        self.mlp = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 5))

    def forward(self, points: Tensor) -> tuple[Tensor, Tensor]:
        b, n, _ = points.shape
        chosen = torch.zeros(b, self.samples, dtype=torch.long)
        distance = torch.full((b, n), 1e10)
        farthest = torch.zeros(b, dtype=torch.long)
        rows = torch.arange(b)
        for i in range(self.samples):
            chosen[:, i] = farthest
            centre = points[rows, farthest, :].view(b, 1, 3)
            d = ((points - centre) ** 2).sum(-1)
            distance = torch.min(distance, d)
            farthest = distance.max(-1).indices
        centres = points[rows[:, None], chosen]
        near = torch.cdist(centres, points).topk(self.k, largest=False).indices
        groups = points[rows[:, None, None], near] - centres[:, :, None]
        return self.mlp(groups).max(2).values, chosen


@case("points.0", "points.1")
def farthest_point_sampling():
    return Farthest(), (randn(2, 10, 3),), (randn(1, 7, 3),), (randn(3, 15, 3),)


class Splatting(nn.Module):
    """Features of points are written into a grid seen from above, by their coordinates; those outside are dropped."""

    def __init__(self, cells: int = 6) -> None:
        super().__init__()
        self.cells = cells
        self.lift = nn.Linear(4, 5)
        self.net = nn.Conv2d(5, 3, 3, padding=1)

    def forward(self, points: Tensor) -> Tensor:
        b = points.size(0)
        features = self.lift(points).relu()
        cell = ((points[..., :2] + 1) / 2 * self.cells).floor().to(torch.int32)
        inside = ((cell >= 0) & (cell < self.cells)).all(-1)
        index = (torch.arange(b)[:, None] * self.cells + cell[..., 1]) * self.cells + cell[..., 0]
        grid = features.new_zeros(b * self.cells * self.cells, 5)
        grid.index_put_((index[inside].long(),), features[inside], accumulate=True)
        return self.net(grid.view(b, self.cells, self.cells, 5).permute(0, 3, 1, 2).contiguous())


@case("points.0", "points.1")
def splatting_points():
    return Splatting(), (randn(2, 9, 4),), (randn(1, 14, 4),), (randn(3, 5, 4),)


class Warp(nn.Module):
    """A picture moved by a field, from places that are kept for the next call; twice, as flows are integrated."""

    def __init__(self) -> None:
        super().__init__()
        self.grid: Tensor | None = None

    def places(self, flow: Tensor) -> Tensor:
        if self.grid is not None and self.grid.shape[0] == flow.shape[0] and self.grid.shape[1:] == flow.shape[2:]:
            return self.grid
        mesh = torch.stack(torch.meshgrid([torch.arange(0, size) for size in flow.shape[2:]], indexing="ij"))
        self.grid = torch.stack([mesh] * flow.shape[0]).to(flow)
        return self.grid

    def forward(self, image: Tensor, flow: Tensor) -> Tensor:
        for _ in range(2):
            grid = (self.places(flow) + flow).permute(0, 2, 3, 1)
            for axis, size in enumerate(flow.shape[2:]):
                grid[..., axis] = grid[..., axis] * 2 / (size - 1) - 1
            image = F.grid_sample(image, grid.flip(-1), align_corners=True)
        return image


@case("image.0", "image.2", "image.3")
def pictures_moved_by_fields():
    return Warp(), (randn(2, 3, 6, 8), randn(2, 2, 6, 8)), (randn(3, 3, 9, 5), randn(3, 2, 9, 5))
