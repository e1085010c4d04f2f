"""Detection and segmentation heads: levels, peaks, thresholds, crops, prototypes."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class LevelsThenBest(nn.Module):
    """One head for all levels of a pyramid; the best candidates of each level, at most a hundred of them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, 2, 1)
        self.down = nn.ModuleList([nn.Conv2d(6, 6, 3, 2, 1) for _ in range(2)])
        self.scores, self.boxes = nn.Conv2d(6, 2, 3, padding=1), nn.Conv2d(6, 4, 3, padding=1)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        feature, scores, boxes = self.stem(images), [], []
        for down in self.down:
            feature = F.relu(down(feature))
            b, _, h, w = feature.shape
            s = self.scores(feature).permute(0, 2, 3, 1).reshape(b, -1)
            d = self.boxes(feature).permute(0, 2, 3, 1).reshape(b, -1, 4)
            best = torch.topk(s, min(20, s.shape[1]))
            place = (best.indices // 2).unsqueeze(-1).expand(-1, -1, 4)
            scores.append(best.values.sigmoid())
            boxes.append(d.gather(1, place) * images.new_tensor([w, h, w, h]))
        return {"scores": torch.cat(scores, 1), "boxes": torch.cat(boxes, 1)}


@case("images.0", "images.2", "images.3")
def levels_then_the_best():
    return LevelsThenBest(), (randn(2, 3, 32, 40),), (randn(1, 3, 24, 16),), (randn(2, 3, 48, 64),)


class Peaks(nn.Module):
    """Centres of objects are local maxima of a heat map."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU())
        self.heat, self.size, self.offset = nn.Conv2d(8, 3, 1), nn.Conv2d(8, 2, 1), nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = self.body(x)
        heat = self.heat(y).sigmoid()
        heat = heat * (F.max_pool2d(heat, 3, 1, 1) == heat)
        b, _, h, w = heat.shape
        scores, at = heat.view(b, -1).topk(10)
        classes, at = at // (h * w), at % (h * w)
        ys, xs = (at // w).float(), (at % w).float()
        take = lambda m: m.flatten(2).transpose(1, 2).gather(1, at[..., None].repeat(1, 1, m.shape[1]))  # noqa: E731
        centre = torch.stack([xs, ys], -1) + take(self.offset(y))
        half = take(self.size(y)).exp() / 2
        return torch.cat([centre - half, centre + half], -1) * 2, scores, classes


@case("x.0", "x.2", "x.3")
def peaks_of_a_heat_map():
    return Peaks(), (randn(2, 3, 24, 32),), (randn(3, 3, 16, 20),)


class Thresholded(nn.Module):
    """Points whose score is high enough, as boxes from distances, image by image."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, 8, 3, 4, 1)
        self.score, self.distance = nn.Conv2d(8, 1, 1), nn.Conv2d(8, 4, 1)

    def forward(self, x: Tensor) -> list[Tensor]:
        y = self.body(x).relu()
        h, w = y.shape[-2:]
        grid = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")[::-1], -1) * 4.0 + 2
        points = grid.reshape(-1, 2)
        found = []
        for score, distance in zip(self.score(y).sigmoid(), self.distance(y).exp(), strict=True):
            keep = score.flatten() > 0.5
            left, right = distance.flatten(1).T[keep].chunk(2, -1)
            found.append(torch.cat([points[keep] - left, points[keep] + right, score.flatten()[keep, None]], -1))
        return found


@case("x.2", "x.3")
def points_above_a_threshold():
    return Thresholded(), (randn(2, 3, 24, 32),), (randn(2, 3, 16, 20),)


class Crops(nn.Module):
    """Regions cut out of a feature map, each pooled to one size."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4 * 9, 5)

    def forward(self, x: Tensor, boxes: Tensor) -> Tensor:
        y = self.body(x)[0]
        parts = []
        for x1, y1, x2, y2 in boxes.tolist():
            parts.append(F.adaptive_avg_pool2d(y[:, y1:y2, x1:x2], 3).flatten())
        return self.head(torch.stack(parts))


@case("x.2", "x.3")
def regions_cut_out_and_pooled():
    boxes = torch.tensor([[0, 0, 6, 6], [2, 3, 9, 7]])
    return Crops(), (randn(1, 3, 12, 10), boxes), (randn(1, 3, 16, 20), torch.tensor([[1, 1, 7, 8], [4, 2, 10, 14]]))


class Prototypes(nn.Module):
    """Masks as mixtures of prototypes, cut off outside of their boxes."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.protos = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 5, 1)

    def forward(self, x: Tensor, boxes: Tensor, mixture: Tensor) -> Tensor:
        protos = self.protos(F.silu(self.body(x)))[0]
        _, h, w = protos.shape
        masks = (mixture.tanh() @ protos.flatten(1)).view(-1, h, w)
        x1, y1, x2, y2 = (boxes / 2)[:, :, None].unbind(1)
        r, c = torch.arange(w)[None, None, :], torch.arange(h)[None, :, None]
        inside = (r >= x1[:, :, None]) & (r < x2[:, :, None]) & (c >= y1[:, :, None]) & (c < y2[:, :, None])
        masks = F.interpolate((masks * inside)[None], x.shape[2:], mode="bilinear", align_corners=False)[0]
        return masks.gt(0.1)


@case("x.2", "x.3", "boxes.0", "mixture.0")
def masks_of_prototypes():
    def call(n: int, h: int, w: int) -> tuple[Tensor, ...]:
        low = torch.rand(n, 2) * 4
        return randn(1, 3, h, w), torch.cat([low, low + 5 + torch.rand(n, 2) * 5], 1), randn(n, 5)

    return Prototypes(), call(3, 16, 20), call(5, 24, 18)


class TwoStages(nn.Module):
    """Boxes around cells that look promising; the features of each are classified, and move it, if there are any."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, 8, 3, 4, 1)
        self.promise, self.rough = nn.Conv2d(8, 1, 1), nn.Conv2d(8, 4, 1)
        self.classify, self.fine = nn.Linear(8, classes), nn.Linear(8, 4 * classes)

    def decode(self, deltas: Tensor, boxes: list[Tensor]) -> Tensor:
        total, all_boxes = 0, torch.cat(boxes)
        for each in boxes:
            total += each.size(0)
        if total > 0:
            deltas = deltas.reshape(total, -1)
        low = all_boxes[:, None, :2] + deltas[:, 0::4, None].tanh()
        high = all_boxes[:, None, 2:] + deltas[:, 1::4, None].tanh()
        moved = torch.cat([low, high], 2).flatten(1)
        if total > 0:
            moved = moved.reshape(total, -1, 4)
        return moved

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        features = self.body(image[None]).relu()
        h, w = features.shape[-2:]
        y, x = torch.meshgrid(torch.arange(h) * 4.0, torch.arange(w) * 4.0, indexing="ij")
        cells = torch.stack([x.reshape(-1), y.reshape(-1), x.reshape(-1) + 4, y.reshape(-1) + 4], 1)
        boxes = cells + self.rough(features).flatten(2)[0].T.tanh()
        boxes = boxes[self.promise(features).flatten() > 0][:20]
        place = (boxes[:, :2] / 4).round().long().clamp(min=0)
        looks = features[0, :, place[:, 1].clamp(max=h - 1), place[:, 0].clamp(max=w - 1)].T
        moved = self.decode(self.fine(looks), [boxes])
        scores = self.classify(looks).softmax(-1)[:, 1:]
        good = torch.where(scores.flatten() > 0.2)[0]
        return {"boxes": moved[:, 1:].reshape(-1, 4)[good], "scores": scores.flatten()[good]}


@case("image.1", "image.2")
def two_stages_of_a_detector():
    return TwoStages(), (randn(3, 24, 32),), (randn(3, 17, 40),), (randn(3, 36, 9),)
