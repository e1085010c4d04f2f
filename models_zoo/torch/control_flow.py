from __future__ import annotations

import torch
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built


def early_exit(*, features: int = 12, width: int = 32, classes: int = 4) -> Built:
    """Takes the shallow branch on inputs of small magnitude, the deep one on others; the samples take one each."""
    samples = ((0.1 * torch.randn(1, features),), (3.0 * torch.randn(5, features),))
    return Built(EarlyExit(features, width, classes), samples, frozenset({"x.0"}))


def fixed_point(*, features: int = 8, width: int = 16) -> Built:
    """A deep-equilibrium layer (Bai et al., 2019), solved by plain iteration."""
    samples = ((torch.randn(1, features),), (torch.randn(5, features),))
    return Built(FixedPoint(features, width), samples, frozenset({"x.0"}))


class EarlyExit(nn.Module):
    """One of two branches by a condition on the data."""

    def __init__(self, features: int, width: int, classes: int) -> None:
        super().__init__()
        self.stem, self.shallow = nn.Linear(features, width), nn.Linear(width, classes)
        self.deep = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, classes))

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.stem(x))

        def shallow(hidden: Tensor) -> Tensor:
            return self.shallow(hidden)

        def deep(hidden: Tensor) -> Tensor:
            return self.deep(hidden)

        return torch.cond(x.abs().mean() < 0.5, shallow, deep, (hidden,))


class FixedPoint(nn.Module):
    """z = tanh(Wz + Ux), iterated until no element moves by more than the tolerance; with the number of steps."""

    def __init__(self, features: int, width: int, tolerance: float = 1e-4, limit: int = 60) -> None:
        super().__init__()
        self.inject, self.step = nn.Linear(features, width), nn.Linear(width, width, bias=False)
        self.tolerance, self.limit = tolerance, limit
        with torch.no_grad():  # a contraction, so that there is one fixed point
            self.step.weight *= 0.7 / torch.linalg.matrix_norm(self.step.weight, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        injected = self.inject(x)

        def unsettled(steps: Tensor, moved: Tensor, z: Tensor) -> Tensor:
            return (moved > self.tolerance) & (steps < self.limit)

        def iterate(steps: Tensor, moved: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            following = torch.tanh(self.step(z) + injected)
            return steps + 1, (following - z).abs().max(), following

        start = (torch.tensor(0), torch.tensor(float("inf")), torch.zeros_like(injected))
        steps, _, z = torch.while_loop(unsettled, iterate, start)
        return z, steps
