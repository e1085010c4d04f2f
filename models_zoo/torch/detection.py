from __future__ import annotations

import torch
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built


def detection_head(*, channels: int = 16, classes: int = 4, size: int = 12, keep: int = 20) -> Built:
    """An anchor-free head over a feature map: the ``keep`` best boxes of each image."""
    samples = ((torch.randn(1, channels, size, size),), (torch.randn(3, channels, size + 4, size),))
    return Built(DetectionHead(channels, classes, keep), samples, frozenset({"features.0", "features.2", "features.3"}))


class DetectionHead(nn.Module):
    """FCOS-like: class scores, centreness and distances to the four sides at every position."""

    def __init__(self, channels: int, classes: int, keep: int, stride: int = 8) -> None:
        super().__init__()
        self.keep, self.stride, self.classes = keep, stride, classes
        self.tower = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1), nn.GroupNorm(4, channels), nn.ReLU(inplace=True)
        )
        self.scores = nn.Conv2d(channels, classes, 3, padding=1)
        self.centreness = nn.Conv2d(channels, 1, 3, padding=1)
        self.sides = nn.Conv2d(channels, 4, 3, padding=1)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.tower(features)
        scores = torch.sqrt(torch.sigmoid(self.scores(x)) * torch.sigmoid(self.centreness(x)))
        best, labels = scores.flatten(2).max(dim=1)
        top, where = torch.topk(best, self.keep, dim=1)
        boxes = self.boxes(x)
        boxes = boxes.gather(1, where.unsqueeze(-1).expand(-1, -1, 4))
        return boxes, top, labels.gather(1, where)

    def boxes(self, x: Tensor) -> Tensor:
        """Corners of the box at every position, (N, H · W, 4)."""
        height, width = x.shape[-2:]
        rows = (torch.arange(height, device=x.device, dtype=x.dtype) + 0.5) * self.stride
        columns = (torch.arange(width, device=x.device, dtype=x.dtype) + 0.5) * self.stride
        y, x0 = torch.meshgrid(rows, columns, indexing="ij")
        centres = torch.stack([x0, y], dim=-1).reshape(-1, 2)
        sides = torch.exp(self.sides(x)).permute(0, 2, 3, 1).flatten(1, 2) * self.stride
        return torch.cat([centres - sides[..., :2], centres + sides[..., 2:]], dim=-1)
