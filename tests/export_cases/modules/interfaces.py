"""How research code is called and what it leans on: named tuples, choices, distributions, bits, frames in space."""

from __future__ import annotations

import enum
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, distributions, nn, rand, randint, randn

from tests.export_cases.case import case


class Reduction(enum.Enum):
    """How frames become one vector."""

    MEAN = "mean"
    LAST = "last"


class Clip(NamedTuple):
    """Frames, and how many of them count."""

    frames: Tensor
    lengths: Tensor


class Described(nn.Module):
    """A clip in a tuple with names; everything else is keyword-only, and may be left out."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 6)

    def forward(
        self,
        clip: Clip,
        *,
        speaker: Tensor | None = None,
        reduction: Reduction = Reduction.MEAN,
        scale: float = 1.0,
    ) -> Clip:
        x = torch.tanh(self.body(clip.frames))
        if speaker is not None:
            x = x + speaker[:, None]
        inside = torch.arange(x.size(1)) < clip.lengths[:, None]
        if reduction is Reduction.LAST:
            pooled = x[torch.arange(len(x)), clip.lengths - 1]
        else:
            pooled = (x * inside[..., None]).sum(1) / clip.lengths[:, None]
        return Clip(pooled * scale, clip.lengths * 2)


def _clip(b: int, t: int) -> Clip:
    return Clip(randn(b, t, 4), torch.cat([randint(1, t + 1, (b - 1,)), torch.tensor([t])]))


@case("clip.frames.0", "clip.frames.1")
def named_tuple_and_a_choice():
    def inputs(b, t):
        return {"clip": _clip(b, t), "speaker": randn(b, 6), "reduction": Reduction.LAST, "scale": 0.5}

    return Described(), inputs(2, 5), inputs(1, 8), inputs(4, 3)


@case("clip.frames.0", "clip.frames.1")
def named_tuple_with_nothing_else():
    return Described(), {"clip": _clip(2, 5)}, {"clip": _clip(1, 8)}, {"clip": _clip(4, 3)}


class Counts(nn.Module):
    """Likelihoods, entropies and divergences by ``torch.distributions``."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 8)

    def forward(self, x: Tensor, seen: Tensor) -> dict[str, Tensor]:
        a, b, c, d = F.softplus(self.body(x)).add(0.1).split(2, -1)
        counts = distributions.NegativeBinomial(total_count=a, logits=b)
        heavy = distributions.StudentT(2 + c, a, d)
        beta = distributions.Beta(a + 1, b + 1)
        one, other = distributions.Normal(a, b), distributions.Normal(c, d)
        mixed = distributions.Independent(distributions.LogNormal(a.log(), d), 1)
        return {
            "counts": counts.log_prob(seen),
            "heavy": heavy.log_prob(seen),
            "entropy": beta.entropy(),
            "divergence": distributions.kl_divergence(one, other),
            "joint": mixed.log_prob(seen + 1),
            "mean": counts.mean,
        }


@case("x.0")
def likelihoods_of_counts():
    def inputs(n):
        return randn(n, 4), randint(0, 9, (n, 2)).float()

    return Counts(), inputs(3), inputs(1), inputs(6)


class Bits(nn.Module):
    """Binary codes packed into bytes, and how many bits differ."""

    def __init__(self) -> None:
        super().__init__()
        self.planes = nn.Linear(6, 16, bias=False)
        self.register_buffer("powers", (1 << torch.arange(8)).to(torch.uint8))

    def _packed(self, x: Tensor) -> Tensor:
        bits = (self.planes(x) > 0).view(-1, 2, 8)
        return (bits.to(torch.uint8) * self.powers).sum(-1, dtype=torch.uint8)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        a, b = self._packed(x), self._packed(y)
        different = torch.bitwise_xor(a[:, None], b[None])
        count = torch.zeros(different.shape, dtype=torch.int32)
        for i in range(8):
            count = count + ((different >> i) & 1).int()
        return a, count.sum(-1)


@case("x.0", "y.0")
def codes_of_bits():
    return Bits(), (randn(3, 6), randn(5, 6)), (randn(1, 6), randn(8, 6)), (randn(4, 6), randn(2, 6))


class Frames(nn.Module):
    """Attention between points in frames that turn with each residue, and triangles of pairs."""

    def __init__(self, width: int = 6, points: int = 2) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.places, self.pair = nn.Linear(width, 2 * 3 * points), nn.Linear(4, 1)
        self.left, self.right, self.back = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.move, self.gamma, self.points = nn.Linear(width + 3 * points, 6), nn.Parameter(torch.tensor(0.3)), points

    @staticmethod
    def _rotation(quaternion: Tensor) -> Tensor:
        w, x, y, z = F.normalize(quaternion, dim=-1).unbind(-1)
        rows = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
        return torch.stack([torch.stack(row, -1) for row in rows], -2)

    def forward(self, single: Tensor, pair: Tensor, quaternion: Tensor, origin: Tensor) -> tuple[Tensor, ...]:
        pair = pair + self.back(torch.einsum("bikc,bjkc->bijc", self.left(pair).sigmoid(), self.right(pair)))
        turn = self._rotation(quaternion)
        places = self.places(single).unflatten(-1, (2, self.points, 3))
        there = torch.einsum("bnij,bnspj->bnspi", turn, places) + origin[:, :, None, None]
        asked, kept = there.unbind(2)
        apart = (asked[:, :, None] - kept[:, None]).square().sum((-1, -2))
        logits = self.q(single) @ self.k(single).mT / 6**0.5 + self.pair(pair)[..., 0] - F.softplus(self.gamma) * apart
        weights = logits.softmax(-1)
        seen = torch.einsum("bnm,bmpi->bnpi", weights, kept) - origin[:, :, None]
        seen = torch.einsum("bnji,bnpj->bnpi", turn, seen).flatten(2)
        out = torch.cat([weights @ self.v(single), seen], -1)
        change = self.move(out)
        step = torch.cat([torch.ones_like(change[..., :1]), change[..., :3]], -1)
        return out, pair, F.normalize(step, dim=-1), origin + (turn @ change[..., 3:, None])[..., 0]


@case("single.0", "single.1")
def frames_that_turn_with_residues():
    def inputs(b, n):
        return randn(b, n, 6), randn(b, n, n, 4), randn(b, n, 4), randn(b, n, 3)

    return Frames(), inputs(2, 5), inputs(1, 7), inputs(3, 2)


class Pooled(nn.Module):
    """Clusters of nodes with losses, then sets read by an LSTM that asks."""

    def __init__(self, width: int = 5, clusters: int = 3) -> None:
        super().__init__()
        self.embed, self.assign = nn.Linear(width, width), nn.Linear(width, clusters)
        self.cell, self.width = nn.LSTMCell(2 * width, width), width

    def forward(self, x: Tensor, adjacency: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        around = adjacency @ x / adjacency.sum(-1, keepdim=True).clamp(min=1)
        m = mask.unsqueeze(-1).to(x.dtype)
        s = torch.softmax(self.assign(around), -1) * m
        pooled, links = s.mT @ (self.embed(around).relu() * m), s.mT @ adjacency @ s
        loss = torch.norm(adjacency - s @ s.mT, p=2) / adjacency.numel()
        entropy = (-s * torch.log(s + 1e-15)).sum(-1).mean()
        asked = x.new_zeros(x.size(0), 2 * self.width)
        state = (x.new_zeros(x.size(0), self.width), x.new_zeros(x.size(0), self.width))
        for _ in range(3):
            state = self.cell(asked, state)
            weights = torch.softmax((pooled * state[0][:, None]).sum(-1), -1)
            asked = torch.cat([state[0], torch.einsum("bn,bnd->bd", weights, pooled)], -1)
        return asked, links, loss + entropy


@case("x.0", "x.1")
def clusters_of_nodes():
    def inputs(b, n):
        a = (rand(b, n, n) > 0.5).float()
        return randn(b, n, 5), (a + a.mT).clamp(max=1), torch.arange(n) < randint(1, n + 1, (b, 1))

    return Pooled(), inputs(2, 6), inputs(1, 9), inputs(3, 4)


class Adaptive(nn.Module):
    """Runge–Kutta with steps that an error estimate chooses."""

    def __init__(self) -> None:
        super().__init__()
        self.field = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3))

    def forward(self, y: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
        t, h = torch.zeros(()), torch.tensor(0.3)
        steps = torch.zeros((), dtype=torch.long)
        while t < end:
            h = torch.minimum(h, end - t)
            k1 = self.field(y)
            k2 = self.field(y + h / 2 * k1)
            k3 = self.field(y + 0.75 * h * k2)
            new = y + h * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
            k4 = self.field(new)
            error = (h * (-5 / 72 * k1 + 1 / 12 * k2 + 1 / 9 * k3 - 1 / 8 * k4)).abs().max() / 2e-3
            if error <= 1.0:
                t, y = t + h, new
            h = h * (0.9 * error.clamp(min=1e-6) ** (-1 / 3)).clamp(0.3, 3.0)
            steps = steps + 1
        return y, steps


@case("y.0")
def steps_chosen_by_the_error():
    return (
        Adaptive(),
        (randn(2, 3), torch.tensor(1.0)),
        (randn(5, 3), torch.tensor(2.0)),
        (randn(1, 3), torch.tensor(0.2)),
    )
