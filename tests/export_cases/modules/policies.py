"""Policies of reinforcement learning: masked actions, recurrent states that are reset, returns, planning."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class MaskedActions(nn.Module):
    """A categorical distribution over the actions that are allowed."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.logits, self.value = nn.Linear(6, 16), nn.Linear(16, 5), nn.Linear(16, 1)

    def forward(self, observation: Tensor, allowed: Tensor) -> dict[str, Tensor]:
        h = torch.tanh(self.body(observation))
        logits = self.logits(h).masked_fill(~allowed, torch.finfo(h.dtype).min)
        policy = torch.distributions.Categorical(logits=logits)
        action = policy.probs.argmax(-1)
        return {"action": action, "log_prob": policy.log_prob(action), "value": self.value(h).squeeze(-1)}


@case("observation.0", "allowed.0")
def actions_that_are_allowed():
    allowed = torch.tensor([[1, 1, 0, 1, 0], [0, 1, 1, 1, 1], [1, 0, 0, 0, 1]]).bool()
    return MaskedActions(), (randn(3, 6), allowed), (randn(1, 6), allowed[1:2]), (randn(2, 6), allowed[:2])


class ResetPolicy(nn.Module):
    """A recurrent policy over a roll-out; an episode that ends starts from nothing."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.encoder, self.cell, self.actor = nn.Linear(4, width), nn.LSTMCell(width, width), nn.Linear(width, 3)

    def forward(self, observations: Tensor, done: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple]:
        hidden, cell = state
        outputs = []
        for x, d in zip(self.encoder(observations).relu(), done, strict=True):
            keep = (1.0 - d.float()).unsqueeze(-1)
            hidden, cell = self.cell(x, (hidden * keep, cell * keep))
            outputs.append(hidden)
        return self.actor(torch.stack(outputs)), (hidden, cell)


@case("observations.0", "observations.1", "done.0", "done.1")
def episodes_that_start_anew():
    def call(t: int, b: int) -> tuple:
        return randn(t, b, 4), torch.rand(t, b) < 0.3, (randn(b, 8), randn(b, 8))

    return ResetPolicy(), call(5, 2), call(8, 3), call(1, 1)


class Advantages(nn.Module):
    """Generalised advantages, from the last step back to the first."""

    def __init__(self) -> None:
        super().__init__()
        self.value = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, observations: Tensor, rewards: Tensor, done: Tensor) -> tuple[Tensor, Tensor]:
        values = self.value(observations).squeeze(-1)
        advantages, last = torch.zeros_like(rewards), 0.0
        for t in reversed(range(rewards.shape[0])):
            alive = 1.0 - done[t]
            delta = rewards[t] + 0.99 * values[t + 1] * alive - values[t]
            last = delta + 0.99 * 0.95 * alive * last
            advantages[t] = last
        return advantages, advantages + values[:-1]


@case("observations.0", "observations.1", "rewards.0", "rewards.1")
def advantages_backwards():
    def call(t: int, b: int) -> tuple:
        return randn(t + 1, b, 4), randn(t, b), (torch.rand(t, b) < 0.3).float()

    return Advantages(), call(5, 2), call(9, 3), call(2, 1)


class NoisyDuel(nn.Module):
    """A duelling network over frames whose layers are noisy while they are trained."""

    class Noisy(nn.Module):
        def __init__(self, inside: int, outside: int) -> None:
            super().__init__()
            self.mu, self.sigma = (
                nn.Parameter(randn(outside, inside) / 4),
                nn.Parameter(torch.full((outside, inside), 0.1)),
            )
            self.bias = nn.Parameter(torch.zeros(outside))
            self.register_buffer("noise", randn(outside, inside))

        def forward(self, x: Tensor) -> Tensor:
            weight = self.mu + self.sigma * self.noise if self.training else self.mu
            return F.linear(x, weight, self.bias)

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 8, 4, 2), nn.ReLU(), nn.Flatten())
        self.value, self.advantage = self.Noisy(8 * 25, 1), self.Noisy(8 * 25, 6)

    def forward(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        h = self.body(frames.float() / 255)
        advantage = self.advantage(h)
        q = self.value(h) + advantage - advantage.mean(1, keepdim=True)
        return q.argmax(1), q


@case("frames.0")
def duel_of_noisy_layers():
    def call(n: int) -> tuple[Tensor]:
        return (torch.randint(0, 256, (n, 4, 12, 12), dtype=torch.uint8),)

    return NoisyDuel(), call(2), call(1), call(5)


class Decisions(nn.Module):
    """Returns, states and actions as one sequence of tokens, read causally."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.goal, self.state, self.action = nn.Linear(1, width), nn.Linear(4, width), nn.Embedding(3, width)
        self.time, self.norm = nn.Embedding(32, width), nn.LayerNorm(width)
        self.layer, self.head = nn.TransformerEncoderLayer(width, 2, 16, batch_first=True), nn.Linear(width, 3)

    def forward(self, goals: Tensor, states: Tensor, actions: Tensor, steps: Tensor, mask: Tensor) -> Tensor:
        b, t = actions.shape
        time = self.time(steps)
        tokens = (self.goal(goals) + time, self.state(states) + time, self.action(actions) + time)
        x = self.norm(torch.stack(tokens, 1).permute(0, 2, 1, 3).reshape(b, 3 * t, -1))
        padding = torch.stack((mask, mask, mask), 1).permute(0, 2, 1).reshape(b, 3 * t) == 0
        causal = nn.Transformer.generate_square_subsequent_mask(3 * t)
        x = self.layer(x, causal, torch.zeros(b, 3 * t).masked_fill(padding, -1e9))
        return self.head(x.reshape(b, t, 3, -1).permute(0, 2, 1, 3)[:, 1])


@case("goals.0", "goals.1", "states.0", "states.1", "actions.0", "actions.1")
def decisions_as_tokens():
    def call(b: int, t: int) -> tuple:
        steps, mask = torch.arange(t).repeat(b, 1), torch.ones(b, t)
        mask[0, -1] = 0
        return randn(b, t, 1), randn(b, t, 4), torch.randint(0, 3, (b, t)), steps, mask

    return Decisions(), call(2, 4), call(3, 7)


class Planner(nn.Module):
    """Candidate plans are refined by the mean and deviation of the best of them; the noise is given."""

    def __init__(self) -> None:
        super().__init__()
        self.dynamics, self.reward = nn.Linear(4 + 2, 4), nn.Linear(4 + 2, 1)

    def _worth(self, state: Tensor, plans: Tensor) -> Tensor:
        total = torch.zeros(plans.shape[0])
        state = state.expand(plans.shape[0], -1)
        for t in range(plans.shape[1]):
            both = torch.cat([state, plans[:, t]], -1)
            total = total + self.reward(both).squeeze(-1)
            state = torch.tanh(self.dynamics(both))
        return total

    def forward(self, state: Tensor, noise: Tensor) -> Tensor:
        mean, deviation = torch.zeros(noise.shape[2:]), torch.ones(noise.shape[2:])
        for draw in noise:
            plans = mean + deviation * draw
            best = plans[self._worth(state, plans).topk(3).indices]
            mean, deviation = best.mean(0), best.std(0) + 1e-3
        return mean[0]


@case("noise.0", "noise.1", "noise.2")
def plans_refined_by_the_best():
    return (
        Planner(),
        (randn(1, 4), randn(3, 8, 5, 2)),
        (randn(1, 4), randn(2, 12, 4, 2)),
        (randn(1, 4), randn(4, 5, 6, 2)),
    )
