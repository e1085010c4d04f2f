"""Decisions one after another: pointers, policies, returns, the best path of tags."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn, rand, randint, randn

from tests.export_cases.case import case


class Pointer(nn.Module):
    """Decodes step by step for a fixed number of steps, never visiting a place twice."""

    def __init__(self, width: int = 8, steps: int = 4) -> None:
        super().__init__()
        self.steps = steps
        self.encoder = nn.Linear(2, width)
        self.cell = nn.LSTMCell(width, width)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, places: Tensor) -> tuple[Tensor, Tensor]:
        x = self.encoder(places)
        h = c = x.mean(1)
        at = x[:, 0]
        mask = torch.zeros(x.shape[:2], dtype=torch.bool)
        tour, total = [], torch.zeros(x.size(0))
        for _ in range(self.steps):
            h, c = self.cell(at, (h, c))
            scores = torch.einsum("bd,bnd->bn", self.query(h), self.key(x)) / math.sqrt(x.size(-1))
            logp = (10 * scores.tanh()).masked_fill(mask, float("-inf")).log_softmax(-1)
            value, index = logp.max(-1)
            total = total + value
            mask = mask.scatter(1, index[:, None], True)
            at = x[torch.arange(x.size(0)), index]
            tour.append(index)
        return torch.stack(tour, 1), total


@case("places.0", "places.1")
def pointer_decoder():
    return Pointer(), (rand(2, 6, 2),), (rand(1, 9, 2),), (rand(4, 5, 2),)


class Policy(nn.Module):
    """An actor and critic with a mask of actions: a squashed normal, a categorical, and the entropy."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 8), nn.Tanh())
        self.pi, self.mean, self.value = nn.Linear(8, 4), nn.Linear(8, 2), nn.Linear(8, 1)
        self.log_std = nn.Parameter(torch.zeros(2))

    def forward(self, obs: Tensor, legal: Tensor) -> dict[str, Tensor]:
        h = self.body(obs.float() / 255.0)
        logits = torch.where(legal.bool(), self.pi(h), torch.tensor(-1e9))
        discrete = torch.distributions.Categorical(logits=logits)
        normal = torch.distributions.Normal(self.mean(h), self.log_std.exp())
        action = torch.tanh(normal.mean)
        raw = torch.atanh(action.clamp(-0.999, 0.999))
        logp = (normal.log_prob(raw) - torch.log(1 - action**2 + 1e-6)).sum(-1)
        return {
            "greedy": discrete.probs.argmax(-1),
            "entropy": discrete.entropy(),
            "action": action,
            "logp": logp,
            "value": self.value(h).squeeze(-1),
        }


@case("obs.0")
def policy_with_illegal_actions():
    def inputs(n):
        legal = randint(0, 2, (n, 4), dtype=torch.uint8)
        legal[:, 0] = 1
        return randint(0, 256, (n, 5), dtype=torch.uint8), legal

    return Policy(), inputs(3), inputs(1), inputs(6)


class Returns(nn.Module):
    """Advantages by backward recursion over rewards, normalised over what was not finished."""

    def __init__(self, gamma: float = 0.99, lam: float = 0.95) -> None:
        super().__init__()
        self.gamma, self.lam = gamma, lam

    def forward(self, rewards: Tensor, values: Tensor, done: Tensor) -> tuple[Tensor, Tensor]:
        advantages = torch.zeros_like(rewards)
        running = torch.zeros(rewards.shape[1])
        for t in reversed(range(rewards.shape[0])):
            alive = 1.0 - done[t].float()
            delta = rewards[t] + self.gamma * values[t + 1] * alive - values[t]
            running = delta + self.gamma * self.lam * alive * running
            advantages[t] = running
        returns = advantages + values[:-1]
        return (advantages - advantages.mean()) / (advantages.std() + 1e-8), returns


@case("rewards.0", "rewards.1")
def advantages_backward():
    return (
        Returns(),
        (randn(5, 2), randn(6, 2), rand(5, 2) > 0.7),
        (randn(9, 3), randn(10, 3), rand(9, 3) > 0.7),
        (randn(3, 1), randn(4, 1), torch.zeros(3, 1, dtype=torch.bool)),
    )


class Tagger(nn.Module):
    """The best path of a conditional random field, and the sum over all of them."""

    def __init__(self, tags: int = 4) -> None:
        super().__init__()
        self.trans, self.start, self.end = (nn.Parameter(randn(*s)) for s in ((tags, tags), (tags,), (tags,)))
        self.emit = nn.Linear(5, tags)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        e = self.emit(x).transpose(0, 1)
        m = mask.transpose(0, 1)
        alpha, best, back = self.start + e[0], self.start + e[0], []
        for i in range(1, e.size(0)):
            step = alpha.unsqueeze(2) + self.trans + e[i].unsqueeze(1)
            alpha = torch.where(m[i].unsqueeze(1), step.logsumexp(1), alpha)
            score, pointer = (best.unsqueeze(2) + self.trans).max(1)
            best = torch.where(m[i].unsqueeze(1), score + e[i], best)
            back.append(torch.where(m[i].unsqueeze(1), pointer, torch.arange(4).expand_as(pointer)))
        total = (alpha + self.end).logsumexp(1)
        tag = (best + self.end).argmax(1)
        path = [tag]
        for pointer in reversed(back):
            tag = pointer.gather(1, tag.unsqueeze(1)).squeeze(1)
            path.append(tag)
        return torch.stack(path[::-1], 1), total


def _masked(batch: int, length: int, *kept: int) -> tuple[Tensor, Tensor]:
    return randn(batch, length, 5), torch.arange(length)[None] < torch.tensor(kept)[:, None]


@case("x.0", "x.1")
def tagger_with_best_path():
    return Tagger(), _masked(2, 6, 6, 4), _masked(3, 9, 9, 2, 5), _masked(1, 4, 4)
