from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn

from entrepot.models_zoo.registry import Built


def mixture_of_experts(*, width: int = 24, experts: int = 4, active: int = 2, length: int = 10) -> Built:
    """A feed-forward block whose experts are chosen per token; all are computed, and the chosen ones weighted."""
    samples = ((torch.randn(1, length, width),), (torch.randn(3, length + 3, width),))
    return Built(MixtureOfExperts(width, experts, active), samples, frozenset({"x.0", "x.1"}))


class Expert(nn.Module):
    """A gated feed-forward block (SwiGLU)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class MixtureOfExperts(nn.Module):
    """RMS norm, router, experts, residual; returns the router's probabilities too."""

    def __init__(self, width: int, experts: int, active: int) -> None:
        super().__init__()
        self.active = active
        self.norm, self.router = nn.RMSNorm(width), nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(Expert(width) for _ in range(experts))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.norm(x)
        probabilities = F.softmax(self.router(y), dim=-1)
        top, chosen = torch.topk(probabilities, self.active, dim=-1)
        weights = torch.zeros_like(probabilities).scatter(-1, chosen, top / top.sum(dim=-1, keepdim=True))
        outputs = torch.stack([expert(y) for expert in self.experts], dim=-2)
        return x + torch.einsum("bte,bted->btd", weights, outputs), probabilities
