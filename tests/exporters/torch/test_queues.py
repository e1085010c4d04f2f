"""Queues and lists that are kept short while a loop fills them."""

from collections import deque

import pytest
import torch
from torch import nn

import entrepot as ep


class Averaged(nn.Module):
    """The mean of the last three steps, of which there are fewer at first."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        window, means = deque(maxlen=3), []
        for t in range(x.shape[1]):
            window.append(x[:, t])
            means.append(torch.stack(list(window)).mean(0))
        return torch.stack(means, 1)


class Reversed(nn.Module):
    """The last three steps, the newest first."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        window = deque(maxlen=3)
        for step in x.unbind(1):
            window.appendleft(step)
        return torch.stack(tuple(window), 1)


class Delayed(nn.Module):
    """A queue of any length, out of which a step comes two steps later; a branch decides when."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        waiting, seen = deque(), []
        for t in range(x.shape[1]):
            waiting.append(x[:, t])
            if len(waiting) > 2:
                seen.append(waiting.popleft() + x[:, t])
            else:
                seen.append(x[:, t])
        return torch.stack(seen, 1)


class Every(nn.Module):
    """A queue that one arm of a branch alone fills."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept, sums = deque(maxlen=2), []
        for t in range(x.shape[1]):
            if t % 2 == 0:
                kept.append(x[:, t])
            sums.append(sum(kept) / len(kept))
        return torch.stack(sums, 1)


class Attended(nn.Module):
    """Keys and values of the last three steps as pairs."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        memory, read = deque(maxlen=3), []
        for t in range(x.shape[1]):
            memory.append((x[:, t], x[:, t] * 2))
            keys = torch.stack([key for key, _ in memory], 1)
            values = torch.stack([value for _, value in memory], 1)
            scores = torch.softmax((keys * x[:, t, None]).sum(-1, keepdim=True), 1)
            read.append((scores * values).sum(1))
        return torch.stack(read, 1)


class Joined(nn.Module):
    """Pieces that are joined along an axis of theirs, as past keys are."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        past, sums = deque(maxlen=3), []
        for t in range(x.shape[1]):
            past.append(x[:, t : t + 1])
            sums.append(torch.cat(list(past), dim=1).sum(1))
        return torch.stack(sums, 1)


class Filled(nn.Module):
    """A queue that the first turn fills, beside weights."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.2, 0.3, 0.5]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        window, sums = deque(maxlen=3), []
        for t in range(x.shape[1]):
            window.append(x[:, t])
            while len(window) < 3:
                window.append(x[:, t])
            sums.append(sum(weight * step for weight, step in zip(self.weight, window, strict=True)))
        return torch.stack(sums, 1)


class Cut(nn.Module):
    """A list that is cut to its last three items."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        past, largest = [], []
        for t in range(x.shape[1]):
            past = ([*past, x[:, t]])[-3:]
            largest.append(torch.stack(past).amax(0))
        return torch.stack(largest, 1)


class Dropped(nn.Module):
    """A list that loses its first item as soon as it is too long."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        past, sums = [], []
        for t in range(x.shape[1]):
            past.append(x[:, t])
            if len(past) > 3:
                del past[0]
            sums.append(sum(past))
        return torch.stack(sums, 1)


class Recent(nn.Module):
    """A list that grows, of which the last three items are read in each turn."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, means = [], []
        for t in range(x.shape[1]):
            states.append(torch.tanh(x[:, t]))
            means.append(torch.stack(states[-3:]).mean(0))
        return torch.stack(means, 1)


class Ring(nn.Module):
    """Places that are written to in turn, by a number that goes round."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ring, place, sums = [torch.zeros_like(x[:, 0])] * 3, 0, []
        for t in range(x.shape[1]):
            sums.append(ring[place] * 0.5 + x[:, t])
            ring[place] = sums[-1]
            place = (place + 1) % len(ring)
        return torch.stack(sums, 1) + torch.stack(ring, 1).sum(1, keepdim=True)


class Bank(nn.Module):
    """A list that holds nothing in the first turn, which the loop asks for, and loses its first item later."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bank, read = [], []
        for step in x.unbind(1):
            if len(bank) == 0:
                read.append(step)
            else:
                read.append(step + torch.stack(bank).sum(0))
            bank.append(step)
            if len(bank) > 2:
                bank = bank[1:]
        return torch.stack(read, 1)


class Totals(nn.Module):
    """A queue of Python's numbers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        totals, scaled = deque(maxlen=3), []
        for t in range(x.shape[1]):
            totals.append(x[:, t].sum().item())
            scaled.append(x[:, t] * (sum(totals) / len(totals)) + max(totals))
        return torch.stack(scaled, 1)


class Second(nn.Module):
    """A list that is given every second state, of which the last one is read as soon as there is one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept, states = [], []
        for t in range(x.shape[1]):
            state = torch.tanh(x[:, t] + (kept[-1] if kept else x[:, 0]))
            states.append(state * (2 if kept else 3))
            if t % 2 == 1:
                kept.append(state)
        return torch.stack(states, 1)


ALL = [Averaged, Reversed, Delayed, Every, Attended, Joined, Filled, Cut, Dropped, Recent, Ring, Bank, Second, Totals]


@pytest.mark.parametrize("kind", ALL)
def test_what_is_kept_short_in_a_loop_takes_any_number_of_turns(kind):
    module = kind().eval()
    model = ep.export(module, torch.randn(2, 6, 4), dynamic="all", progress=False)
    for turns in (1, 2, 3, 11):
        x = torch.randn(3, turns, 4)
        (found,) = ep.Session(model).run({"x": x.numpy()}).values()
        torch.testing.assert_close(torch.from_numpy(found), module(x))


class Exchanged(nn.Module):
    """An item is exchanged for one of another size, which a graph cannot follow."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ring = [x[0]] * 3
        for t in range(x.shape[0]):
            ring[t % 3] = torch.cat([ring[t % 3], x[t]])
        return torch.cat(ring)


def test_an_item_of_another_size_is_no_item_of_a_ring():
    model = ep.export(Exchanged().eval(), torch.randn(5, 4), progress=False)
    x = torch.randn(5, 4)
    (found,) = ep.Session(model).run({"x": x.numpy()}).values()
    torch.testing.assert_close(torch.from_numpy(found), Exchanged()(x))
