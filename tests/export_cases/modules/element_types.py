"""Truth values, bytes, halves and short integers where most code has floats: masks, pictures, sums by segment."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randint, randn

from tests.export_cases.case import case


class SegmentMask(nn.Module):
    """Attention within segments, whose mask is made, joined, counted and returned."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(4, 4)

    def forward(self, x: Tensor, lengths: Tensor, segment: Tensor) -> tuple[Tensor, ...]:
        steps = x.shape[1]
        padded = torch.arange(steps)[None] >= lengths[:, None]
        same = segment[:, :, None] == segment[:, None, :]
        causal = torch.ones(steps, steps, dtype=torch.bool).tril()
        seen = torch.where(segment[:, :, None] > 0, same, causal[None]).masked_fill(padded[:, :, None], False)
        seen = seen | torch.eye(steps, dtype=torch.bool)
        weights = (self.score(x) @ x.mT).masked_fill(~seen, float("-inf")).softmax(-1)
        ends = torch.vstack([seen[:, 0], seen[:, -1]])
        last = steps - 1 - seen.flip(-1).int().argmax(-1)
        return weights @ x, ends, seen.int().argmax(-1), last, torch.where(seen.any(-1), seen.all(1), padded)


def _segments(batch: int, steps: int) -> tuple[Tensor, ...]:
    return randn(batch, steps, 4), randint(1, steps + 1, (batch,)), randint(0, 3, (batch, steps))


@case("x.0", "x.1", "lengths.0", "segment.0", "segment.1")
def masks_of_segments():
    return SegmentMask(), _segments(2, 5), _segments(3, 8), _segments(1, 2)


class Picture(nn.Module):
    """What pre-processing does to bytes, and to corners in short integers."""

    def forward(self, picture: Tensor, corners: Tensor) -> tuple[Tensor, ...]:
        x = picture.permute(0, 3, 1, 2)
        turned, small = x.flip(-1), corners.to(torch.int16)
        enlarged = F.interpolate(x.float() / 255, scale_factor=2, mode="nearest").mul(255).round().byte()
        bright = torch.where(x > 127, x, torch.zeros_like(x))
        return (
            enlarged,
            bright,
            x.amax((2, 3)),
            F.pad(x, (1, 1, 1, 1)),
            (x >> 1) & 15,
            torch.maximum(x, turned),
            (x == turned).all(1),
            x.sort(-1).values,
            small // 2,
            small.clamp(0, 5),
            torch.where(corners > 2, small, 0),
        )


def _bytes(batch: int, height: int, width: int) -> tuple[Tensor, ...]:
    return randint(0, 256, (batch, height, width, 3), dtype=torch.uint8), randint(-5, 9, (batch, 4))


@case("picture.0", "picture.1", "picture.2", "corners.0")
def pictures_of_bytes():
    return Picture(), _bytes(2, 4, 5), _bytes(3, 6, 4), _bytes(1, 2, 7)


class SegmentSums(nn.Module):
    """Rows of a table summed, averaged and compared by segment."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.linear = nn.Embedding(10, 6), nn.Linear(6, 6)

    def forward(self, ids: Tensor, segment: Tensor) -> tuple[Tensor, ...]:
        h = self.linear(self.table(ids))
        zeros = h.new_zeros(int(segment.max()) + 1, h.size(-1))
        at = segment[:, None].expand_as(h)
        found = [zeros.scatter_reduce(0, at, h, how, include_self=False) for how in ("amax", "mean")]
        return zeros.index_add(0, segment, h), *found, h.topk(2, -1).values, torch.where(h > 0, h, -h)


def _rows(*segment: int) -> tuple[Tensor, Tensor]:
    return randint(0, 10, (len(segment),)), torch.tensor(segment)


@case("ids.0", "segment.0")
def halves_in_segments():
    return SegmentSums().half(), _rows(0, 0, 1, 1, 2, 2), _rows(0, 1, 1, 2, 3), _rows(0)


class Letterbox(nn.Module):
    """A picture in the middle of a square, and those of its boxes that are boxes."""

    def forward(self, x: Tensor, boxes: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        height, width = x.shape[-2:]
        keep = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1]) & (labels >= 0)
        boxes, labels = boxes[keep], labels[keep]
        middle = torch.cat([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], 1)
        side = max(height, width)
        top, left = (side - height) // 2, (side - width) // 2
        x = F.pad(x, (left, side - width - left, top, side - height - top), value=0.5)
        x = F.interpolate(x, size=(8, 8), mode="bilinear", align_corners=False)
        return x, middle / torch.tensor([width, height, width, height]), torch.bincount(labels, minlength=5)


def _boxed(batch: int, height: int, width: int, boxes: int) -> tuple[Tensor, ...]:
    return rand(batch, 3, height, width), rand(boxes, 4) * 5, randint(0, 5, (boxes,))


@case("x.0", "x.2", "x.3", "boxes.0", "labels.0")
def picture_in_a_square():
    return Letterbox(), _boxed(2, 6, 9, 4), _boxed(1, 9, 6, 7), _boxed(3, 7, 7, 2)
