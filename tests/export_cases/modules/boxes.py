"""Boxes and crops: anchors, the best of each cell, places around the brightest point."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randn

from tests.export_cases.case import case


class Anchors(nn.Module):
    """Boxes of a grid of anchors, moved by predicted offsets and cut to the picture."""

    def __init__(self, stride: int = 4) -> None:
        super().__init__()
        self.stride = stride
        self.body = nn.Conv2d(3, 8, 3, stride=stride, padding=1)
        self.offsets, self.scores = nn.Conv2d(8, 12, 1), nn.Conv2d(8, 3, 1)
        self.register_buffer("sizes", torch.tensor([[8.0, 8.0], [16.0, 8.0], [8.0, 16.0]]))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        h, w = image.shape[-2:]
        f = self.body(image).relu()
        rows, columns = f.shape[-2:]
        ys, xs = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        centres = (torch.stack([xs, ys], -1).reshape(-1, 1, 2) + 0.5) * self.stride
        anchors = torch.cat([centres - self.sizes / 2, centres + self.sizes / 2], -1).reshape(-1, 4)
        deltas = self.offsets(f).unflatten(1, (3, 4)).permute(0, 3, 4, 1, 2).reshape(image.size(0), -1, 4)
        scores = self.scores(f).permute(0, 2, 3, 1).reshape(image.size(0), -1).sigmoid()
        boxes = anchors + deltas * self.stride
        boxes[..., 0::2] = boxes[..., 0::2].clamp(0, w)
        boxes[..., 1::2] = boxes[..., 1::2].clamp(0, h)
        return boxes, scores


@case("image.0", "image.2", "image.3")
def boxes_of_anchors():
    return Anchors(), (randn(2, 3, 16, 24),), (randn(1, 3, 20, 12),), (randn(3, 3, 33, 17),)


class BestBoxes(nn.Module):
    """The k best of each picture, fewer where there are fewer, with the class of each."""

    def __init__(self, k: int = 10) -> None:
        super().__init__()
        self.k = k

    def forward(self, boxes: Tensor, logits: Tensor) -> dict[str, Tensor]:
        scores = logits.softmax(-1)[..., :-1]
        flat = scores.flatten(1)
        best, index = flat.topk(min(self.k, flat.size(1)), dim=1)
        which = torch.div(index, scores.size(-1), rounding_mode="floor")
        labels = index % scores.size(-1)
        picked = torch.gather(boxes, 1, which.unsqueeze(-1).repeat(1, 1, 4))
        x, y, w, h = picked.unbind(-1)
        return {
            "scores": best,
            "labels": labels,
            "boxes": torch.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], -1),
        }


@case("boxes.0", "boxes.1")
def the_best_boxes():
    return (
        BestBoxes(),
        (rand(2, 7, 4), randn(2, 7, 4)),
        (rand(1, 3, 4), randn(1, 3, 4)),
        (rand(3, 12, 4), randn(3, 12, 4)),
    )


class Crops(nn.Module):
    """A crop of a fixed size around the brightest point of each picture."""

    def __init__(self, size: int = 5) -> None:
        super().__init__()
        self.size = size
        self.conv = nn.Conv2d(1, 2, 3)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        b, w = image.size(0), image.size(3)
        heat = F.avg_pool2d(image.mean(1, keepdim=True), 3, 1, 1)
        index = heat.flatten(1).argmax(1)
        y, x = index // w, index % w
        r = self.size // 2
        padded = F.pad(image, [r, r, r, r], mode="replicate")
        rows = y[:, None] + torch.arange(self.size)
        columns = x[:, None] + torch.arange(self.size)
        crop = padded[torch.arange(b)[:, None, None], :, rows[:, :, None], columns[:, None, :]]
        return self.conv(crop.permute(0, 3, 1, 2)), torch.stack([y, x], 1)


@case("image.0", "image.2", "image.3")
def crops_around_the_brightest():
    return Crops(), (randn(2, 1, 9, 12),), (randn(1, 1, 7, 8),), (randn(3, 1, 16, 11),)
