"""Ends of vision models: levels with limits, key points, masks pasted, pairs of corners, duplicates by matrix."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randn

from tests.export_cases.case import case


class Found(NamedTuple):
    """What was found in a batch."""

    boxes: Tensor
    scores: Tensor
    labels: Tensor


class OneStage(nn.Module):
    """Distances to the sides at every point of every level, scaled by level; the best come first."""

    def __init__(self, classes: int = 4) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 4, 1)
        self.next = nn.Conv2d(8, 8, 3, 2, 1)
        self.cls, self.reg, self.ctr = nn.Conv2d(8, classes, 1), nn.Conv2d(8, 4, 1), nn.Conv2d(8, 1, 1)
        self.scales = nn.ParameterList([nn.Parameter(torch.tensor(1.0)) for _ in range(2)])
        self.strides, self.classes = (4, 8), classes

    @staticmethod
    def points(feature: Tensor, stride: int) -> Tensor:
        h, w = feature.size()[-2:]
        y, x = torch.meshgrid(
            torch.arange(0, h * stride, stride, dtype=torch.float32),
            torch.arange(0, w * stride, stride, dtype=torch.float32),
            indexing="ij",
        )
        return torch.stack((x.reshape(-1), y.reshape(-1)), dim=-1) + stride // 2

    def forward(self, image: Tensor) -> Found:
        n, _, height, width = image.shape
        levels = [self.stem(image)]
        levels.append(self.next(levels[-1].relu()))
        all_boxes, all_scores = [], []
        for level, stride, scale in zip(levels, self.strides, self.scales, strict=False):
            p = self.points(level, stride)
            d = F.relu(self.reg(level) * scale).permute(0, 2, 3, 1).reshape(n, -1, 4) * stride
            s = (self.cls(level).sigmoid() * self.ctr(level).sigmoid()).sqrt()
            boxes = torch.stack(
                [p[:, 0] - d[..., 0], p[:, 1] - d[..., 1], p[:, 0] + d[..., 2], p[:, 1] + d[..., 3]], -1
            )
            boxes[..., 0::2].clamp_(min=0, max=width)
            boxes[..., 1::2].clamp_(min=0, max=height)
            all_boxes.append(boxes)
            all_scores.append(s.permute(0, 2, 3, 1).reshape(n, -1, self.classes))
        boxes, scores = torch.cat(all_boxes, 1), torch.cat(all_scores, 1)
        best, at = scores.flatten(1).topk(min(16, scores.shape[1] * self.classes), dim=1)
        rows = torch.div(at, self.classes, rounding_mode="trunc")
        return Found(boxes[torch.arange(n)[:, None], rows], best, at % self.classes)


@case("image.0", "image.2", "image.3")
def distances_at_every_level():
    return OneStage(), (randn(2, 3, 32, 48),), (randn(1, 3, 40, 24),), (randn(3, 3, 29, 35),)


class KeyPoints(nn.Module):
    """Key points by the mean of a soft map, with their spread and the value there."""

    def __init__(self, points: int = 3) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, points, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        maps = self.net(x)
        n, k, h, w = maps.shape
        soft = maps.view(n, k, -1).softmax(-1).view_as(maps)
        ys = torch.linspace(-1, 1, h, dtype=x.dtype, device=x.device)
        xs = torch.linspace(-1, 1, w, dtype=x.dtype, device=x.device)
        mean = torch.stack([(soft.sum(2) * xs).sum(-1), (soft.sum(3) * ys).sum(-1)], -1)
        spread = torch.stack(
            [(soft.sum(2) * xs**2).sum(-1) - mean[..., 0] ** 2, (soft.sum(3) * ys**2).sum(-1) - mean[..., 1] ** 2], -1
        )
        value = F.grid_sample(maps, mean.unsqueeze(2), align_corners=True).diagonal(dim1=1, dim2=2)
        return mean, spread, value


@case("x.0", "x.2", "x.3")
def key_points_by_soft_maps():
    return KeyPoints(), (randn(2, 3, 17, 24),), (randn(1, 3, 32, 20),), (randn(3, 3, 13, 13),)


class Pasted(nn.Module):
    """Small masks are pasted into images at their boxes."""

    def __init__(self, side: int = 7) -> None:
        super().__init__()
        self.head = nn.Linear(6, side * side)
        self.side = side

    def forward(self, features: Tensor, boxes: Tensor, image: Tensor) -> Tensor:
        masks = self.head(features).sigmoid().view(-1, 1, self.side, self.side)
        h, w = image.shape[-2:]
        x0, y0, x1, y1 = boxes.split(1, dim=1)
        ys = (torch.arange(h, dtype=torch.float32) + 0.5)[None]
        xs = (torch.arange(w, dtype=torch.float32) + 0.5)[None]
        ys, xs = (ys - y0) / (y1 - y0) * 2 - 1, (xs - x0) / (x1 - x0) * 2 - 1
        gx = xs[:, None, :].expand(-1, ys.size(1), -1)
        gy = ys[:, :, None].expand(-1, -1, xs.size(1))
        pasted = F.grid_sample(masks, torch.stack([gx, gy], dim=3), align_corners=False)[:, 0]
        return pasted >= 0.5


def _objects(n: int, h: int, w: int) -> tuple[Tensor, Tensor, Tensor]:
    corner = rand(n, 2) * 4
    return randn(n, 6), torch.cat([corner, corner + 3 + rand(n, 2) * 5], 1), rand(1, 3, h, w)


@case("features.0", "image.2", "image.3")
def masks_pasted_into_images():
    return Pasted(), _objects(4, 12, 15), _objects(2, 20, 11), _objects(7, 9, 9)


class Corners(nn.Module):
    """Upper left and lower right corners are paired where their tags agree."""

    def __init__(self, kept: int = 5) -> None:
        super().__init__()
        self.net, self.kept = nn.Conv2d(3, 4, 3, padding=1), kept

    def peaks(self, heat: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        best = F.max_pool2d(heat, 3, stride=1, padding=1)
        scores, at = (heat * (best == heat).float()).flatten(1).topk(self.kept)
        return scores, at, (at // heat.shape[-1]).float(), (at % heat.shape[-1]).float()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        first, last, tag_a, tag_b = self.net(x).unbind(1)
        sa, ia, ya, xa = self.peaks(first.sigmoid()[:, None].squeeze(1))
        sb, ib, yb, xb = self.peaks(last.sigmoid())
        a, b = tag_a.flatten(1).gather(1, ia), tag_b.flatten(1).gather(1, ib)
        k = self.kept
        grid = [t[:, :, None].expand(-1, k, k) for t in (xa, ya)] + [t[:, None, :].expand(-1, k, k) for t in (xb, yb)]
        boxes = torch.stack(grid, dim=-1)
        score = (sa[:, :, None] + sb[:, None]) / 2
        bad = ((a[:, :, None] - b[:, None]).abs() > 0.5) | (grid[2] < grid[0]) | (grid[3] < grid[1])
        score[bad] = -1
        top, order = score.view(-1, k * k).topk(8)
        return boxes.view(-1, k * k, 4).gather(1, order.unsqueeze(2).expand(-1, -1, 4)), top


@case("x.0", "x.2", "x.3")
def corners_paired_by_tags():
    return Corners(), (randn(2, 3, 9, 12),), (randn(1, 3, 16, 10),), (randn(3, 3, 7, 7),)


class MatrixSuppression(nn.Module):
    """Duplicates of masks lose score by the matrix of their overlaps."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel, self.feature = nn.Linear(5, 6), nn.Conv2d(3, 6, 3, padding=1)

    def forward(self, objects: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
        soft = torch.einsum("nc,chw->nhw", self.kernel(objects), self.feature(image)[0]).sigmoid()
        masks = (soft > 0.5).float()
        area = masks.sum((1, 2))
        score = objects[:, 0].sigmoid() * (soft * masks).sum((1, 2)) / area.clamp(min=1)
        order = torch.argsort(score, descending=True)
        flat, area, score = masks[order].flatten(1), area[order], score[order]
        inter = flat @ flat.t()
        n = len(order)
        size = area.expand(n, n)
        iou = (inter / (size + size.t() - inter).clamp(min=1)).triu(diagonal=1)
        worst = iou.max(0)[0].expand(n, n).t()
        decay = (torch.exp(-2 * iou**2) / torch.exp(-2 * worst**2)).min(0)[0]
        score = score * decay
        keep = score > 0.1
        return score[keep], masks[order][keep]


@case("objects.0", "image.2", "image.3")
def duplicates_by_a_matrix():
    return (
        MatrixSuppression(),
        (randn(6, 5), randn(1, 3, 8, 9)),
        (randn(3, 5), randn(1, 3, 12, 7)),
        (randn(9, 5), randn(1, 3, 6, 6)),
    )
