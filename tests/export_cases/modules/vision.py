"""Vision: detection heads, non-maximum suppression, U-Nets, segmentation, super resolution, image classifiers."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class UNet(nn.Module):
    """Two levels, skips, transposed convolutions."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.one, self.two = self._block(3, width), self._block(width, 2 * width)
        self.middle = self._block(2 * width, 4 * width)
        self.up2, self.up1 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.back2, self.back1 = self._block(4 * width, 2 * width), self._block(2 * width, width)
        self.head = nn.Conv2d(width, 2, 1)

    def _block(self, inside: int, outside: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        one = self.one(x)
        two = self.two(F.max_pool2d(one, 2))
        middle = self.middle(F.max_pool2d(two, 2))
        two = self.back2(torch.cat([two, self.up2(middle)], 1))
        return self.head(self.back1(torch.cat([one, self.up1(two)], 1)))


@case("x.0", "x.2", "x.3")
def unet():
    return UNet(), (randn(2, 3, 16, 16),), (randn(1, 3, 24, 32),)


class UNetAnySize(UNet):
    """The same, cropping skips to what comes from below."""

    def forward(self, x: Tensor) -> Tensor:
        one = self.one(x)
        two = self.two(F.max_pool2d(one, 2))
        up = self.up2(self.middle(F.max_pool2d(two, 2)))
        if up.shape[2:] != two.shape[2:]:
            up = F.interpolate(up, size=two.shape[2:], mode="nearest")
        up = self.up1(self.back2(torch.cat([two, up], 1)))
        if up.shape[2:] != one.shape[2:]:
            up = F.interpolate(up, size=one.shape[2:], mode="nearest")
        return self.head(self.back1(torch.cat([one, up], 1)))


@case("x.0", "x.2", "x.3")
def unet_for_any_size():
    return UNetAnySize(), (randn(2, 3, 18, 15),), (randn(1, 3, 24, 21),)


class Anchors(nn.Module):
    """A one-stage detector: anchors made for the feature map, boxes decoded."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1))
        self.head = nn.Conv2d(8, 3 * 6, 1)
        self.register_buffer("shapes", torch.tensor([[4.0, 4.0], [8.0, 4.0], [4.0, 8.0]]))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.head(self.body(x))
        b, _, h, w = y.shape
        y = y.view(b, 3, 6, h, w).permute(0, 3, 4, 1, 2)
        gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        centre = (torch.stack([gx, gy], -1).unsqueeze(2) + y[..., :2].sigmoid()) * 4
        size = self.shapes * y[..., 2:4].exp()
        boxes = torch.cat([centre - size / 2, centre + size / 2], -1)
        return boxes.reshape(b, -1, 4), y[..., 4:].sigmoid().reshape(b, -1, 2)


@case("x.0", "x.2", "x.3")
def anchors_and_boxes():
    return Anchors(), (randn(2, 3, 16, 20),), (randn(1, 3, 24, 12),)


class Suppression(nn.Module):
    """Non-maximum suppression in plain torch, one box after another."""

    def forward(self, boxes: Tensor, scores: Tensor) -> Tensor:
        order = scores.argsort(descending=True)
        boxes = boxes[order]
        area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
        high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
        inter = (high - low).clamp(min=0).prod(-1)
        overlap = inter / (area[:, None] + area[None] - inter)
        keep = torch.ones(boxes.shape[0], dtype=torch.bool)
        for i in range(boxes.shape[0]):
            keep = keep & ~((overlap[i] > 0.5) & keep[i] & (torch.arange(boxes.shape[0]) > i))
        return order[keep]


def _boxes(n: int) -> tuple[Tensor, Tensor]:
    corner = torch.rand(n, 2) * 4
    return torch.cat([corner, corner + 1 + torch.rand(n, 2) * 2], 1), torch.rand(n)


@case("boxes.0", "scores.0")
def non_maximum_suppression():
    return Suppression(), _boxes(6), _boxes(9)


class Detr(nn.Module):
    """Queries that attend to an image; the mask is resized to it."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, width, 4, 4)
        self.transformer = nn.Transformer(width, 2, 1, 1, 16, batch_first=True)
        self.queries, self.boxes, self.classes = nn.Embedding(5, width), nn.Linear(width, 4), nn.Linear(width, 3)
        self.row, self.column = nn.Parameter(randn(20, width // 2)), nn.Parameter(randn(20, width // 2))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        y = self.body(x)
        h, w = y.shape[-2:]
        pos = torch.cat([self.column[:w].unsqueeze(0).repeat(h, 1, 1), self.row[:h].unsqueeze(1).repeat(1, w, 1)], -1)
        memory = y.flatten(2).transpose(1, 2) + pos.flatten(0, 1)
        out = self.transformer(memory, self.queries.weight.unsqueeze(0).repeat(x.shape[0], 1, 1))
        return {"logits": self.classes(out), "boxes": self.boxes(out).sigmoid()}


@case("x.0", "x.2", "x.3")
def detection_transformer():
    return Detr(), (randn(2, 3, 16, 12),), (randn(1, 3, 24, 20),)


class RoiPool(nn.Module):
    """Regions cut out by bilinear sampling."""

    def forward(self, features: Tensor, boxes: Tensor) -> Tensor:
        h, w = features.shape[-2:]
        t = torch.linspace(0, 1, 4)
        xs = boxes[:, None, 0] + t * (boxes[:, None, 2] - boxes[:, None, 0])
        ys = boxes[:, None, 1] + t * (boxes[:, None, 3] - boxes[:, None, 1])
        grid = torch.stack([xs[:, None, :].expand(-1, 4, -1), ys[:, :, None].expand(-1, -1, 4)], -1)
        grid = grid / torch.tensor([w, h]) * 2 - 1
        return F.grid_sample(features.expand(boxes.shape[0], -1, -1, -1), grid, align_corners=False)


@case("features.2", "features.3", "boxes.0")
def regions_by_sampling():
    return RoiPool(), (randn(1, 3, 8, 9), _boxes(3)[0]), (randn(1, 3, 12, 7), _boxes(5)[0])


class Deeplab(nn.Module):
    """Atrous pyramid with a global branch, resized to the input."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, 6, 3, 2, 1)
        self.rates = nn.ModuleList(nn.Conv2d(6, 4, 3, padding=r, dilation=r) for r in (1, 2, 3))
        self.image, self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(6, 4, 1)), nn.Conv2d(16, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.body(x)
        pooled = F.interpolate(self.image(y), size=y.shape[-2:], mode="bilinear", align_corners=False)
        y = self.head(torch.cat([*(rate(y) for rate in self.rates), pooled], 1))
        return F.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False)


@case("x.0", "x.2", "x.3")
def atrous_pyramid():
    return Deeplab(), (randn(2, 3, 14, 17),), (randn(1, 3, 21, 12),)


class SuperResolution(nn.Module):
    """Sub-pixel convolution beside a bicubic path."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.PReLU(), nn.Conv2d(8, 12, 3, padding=1), nn.PixelShuffle(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x) + F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)


@case("x.0", "x.2", "x.3")
def super_resolution():
    return SuperResolution(), (randn(2, 3, 6, 7),), (randn(1, 3, 9, 5),)


class Flow(nn.Module):
    """Optical flow: a correlation volume and warping."""

    def forward(self, a: Tensor, b: Tensor, flow: Tensor) -> tuple[Tensor, Tensor]:
        n, c, h, w = a.shape
        volume = (a.flatten(2).transpose(1, 2) @ b.flatten(2) / math.sqrt(c)).view(n, h, w, h, w)
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        where = torch.stack([xs, ys]).float() + flow
        scale = torch.tensor([max(w - 1, 1), max(h - 1, 1)]).view(2, 1, 1)
        return volume.amax((-1, -2)), F.grid_sample(b, (2 * where / scale - 1).permute(0, 2, 3, 1), align_corners=True)


@case("a.0", "a.2", "a.3", "b.0", "b.2", "b.3", "flow.0", "flow.2", "flow.3")
def optical_flow():
    def call(n: int, h: int, w: int):
        return randn(n, 3, h, w), randn(n, 3, h, w), randn(n, 2, h, w)

    return Flow(), call(2, 4, 5), call(1, 6, 3)


class Squeeze(nn.Module):
    """Mobile blocks with squeeze and excitation and hard swish."""

    def __init__(self) -> None:
        super().__init__()
        self.expand, self.deep = nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 3, 2, 1, groups=8)
        self.norm, self.squeeze = nn.BatchNorm2d(8), nn.Sequential(nn.Conv2d(8, 2, 1), nn.ReLU(), nn.Conv2d(2, 8, 1))
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = F.hardswish(self.norm(self.deep(self.expand(x))))
        y = y * F.hardsigmoid(self.squeeze(y.mean((2, 3), keepdim=True)))
        return self.head(y.mean([-2, -1]))


@case("x.0", "x.2", "x.3")
def squeeze_and_excitation():
    return Squeeze(), (randn(2, 3, 9, 10),), (randn(1, 3, 14, 7),)


class Video(nn.Module):
    """Three-dimensional convolutions over a clip, frames pooled."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv3d(3, 4, (3, 3, 3), padding=1), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d((1, 2, 2))
        )

    def forward(self, clip: Tensor) -> Tensor:
        return self.net(clip.transpose(1, 2)).mean((2, 3, 4))


@case("clip.0", "clip.1", "clip.3", "clip.4")
def video_classifier():
    return Video(), (randn(2, 4, 3, 6, 8),), (randn(1, 7, 3, 8, 6),)


class Nerf(nn.Module):
    """Positional encoding of rays, densities accumulated along them."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3 * 2 * 4, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, origins: Tensor, directions: Tensor) -> Tensor:
        t = torch.linspace(0.5, 2.0, 8)
        points = origins[:, None] + directions[:, None] * t[:, None]
        angles = points.unsqueeze(-1) * 2.0 ** torch.arange(4)
        raw = self.net(torch.cat([angles.sin(), angles.cos()], -1).flatten(2))
        alpha = 1 - torch.exp(-F.relu(raw[..., 3]) * (t[1] - t[0]))
        seen = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha[:, :-1] + 1e-10], 1), 1)
        return ((alpha * seen).unsqueeze(-1) * raw[..., :3].sigmoid()).sum(1)


@case("origins.0", "directions.0")
def radiance_field():
    return Nerf(), (randn(3, 3), randn(3, 3)), (randn(7, 3), randn(7, 3))
