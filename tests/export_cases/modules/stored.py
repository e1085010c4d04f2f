"""Steps whose state is kept on the module, and weights that are put right whenever they are used."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randint, randn, tensor

from tests.export_cases.case import case


class AttentiveDecoder(nn.Module):
    """Frames of a spectrogram one by one, by attention that knows where it has been; all its state is on the module."""

    def __init__(self, frame: int = 8, text: int = 16, width: int = 20) -> None:
        super().__init__()
        self.frame, self.width = frame, width
        self.prenet = nn.Sequential(nn.Linear(frame, width), nn.ReLU())
        self.attention, self.decoder = nn.LSTMCell(width + text, width), nn.LSTMCell(width + text, width)
        self.query, self.keys = nn.Linear(width, 12, bias=False), nn.Linear(text, 12, bias=False)
        self.places, self.score = nn.Conv1d(2, 12, 5, padding=2, bias=False), nn.Linear(12, 1)
        self.frames, self.gate = nn.Linear(width + text, frame), nn.Linear(width + text, 1)

    def begin(self, memory: Tensor, mask: Tensor) -> None:
        def nothing(*sizes: int) -> Tensor:
            return memory.data.new(*sizes).zero_()

        batch, length = memory.size(0), memory.size(1)
        self.hidden, self.cell = nothing(batch, self.width), nothing(batch, self.width)
        self.h, self.c = nothing(batch, self.width), nothing(batch, self.width)
        self.weights, self.total = nothing(batch, length), nothing(batch, length)
        self.context = nothing(batch, memory.size(2))
        self.memory, self.processed, self.mask = memory, self.keys(memory), mask

    def step(self, frame: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        self.hidden, self.cell = self.attention(torch.cat((frame, self.context), -1), (self.hidden, self.cell))
        places = torch.cat((self.weights.unsqueeze(1), self.total.unsqueeze(1)), 1)
        looked_for = self.query(self.hidden.unsqueeze(1)) + self.places(places).transpose(1, 2) + self.processed
        scores = self.score(torch.tanh(looked_for)).squeeze(-1).masked_fill(self.mask, -1e9)
        self.weights = F.softmax(scores, 1)
        self.total = self.total + self.weights
        self.context = torch.bmm(self.weights.unsqueeze(1), self.memory).squeeze(1)
        self.h, self.c = self.decoder(torch.cat((self.hidden, self.context), -1), (self.h, self.c))
        both = torch.cat((self.h, self.context), 1)
        return self.frames(both), self.gate(both), self.weights

    def forward(self, memory: Tensor, frames: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        first = memory.data.new(memory.size(0), self.frame).zero_().unsqueeze(0)
        inputs = self.prenet(torch.cat((first, frames.permute(2, 0, 1)), 0))
        self.begin(memory, ~(torch.arange(memory.size(1)) < lengths.unsqueeze(1)))
        made, ends, looked_at = [], [], []
        while len(made) < inputs.size(0) - 1:
            frame, gate, weights = self.step(inputs[len(made)])
            made += [frame.squeeze(1)]
            ends += [gate.squeeze(1)]
            looked_at += [weights]
        return torch.stack(made, 2), torch.stack(ends, 1), torch.stack(looked_at, 1)


@case("memory.0", "memory.1", "frames.2")
def attentive_decoder_of_frames():
    return (
        AttentiveDecoder(),
        (randn(2, 6, 16), randn(2, 8, 5), tensor([6, 4])),
        (randn(1, 4, 16), randn(1, 8, 9), tensor([3])),
        (randn(3, 9, 16), randn(3, 8, 2), tensor([9, 1, 5])),
    )


class RememberingCell(nn.Module):
    """Made to be called once a step; it starts anew when it is told to."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.state: Tensor | None = None

    def reset(self) -> None:
        self.state = None

    def forward(self, x: Tensor) -> Tensor:
        if self.state is None:
            self.state = torch.zeros_like(x)
        self.state = torch.tanh(self.linear(x) + self.state)
        return self.state


class RememberingNetwork(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.cells = nn.ModuleList(RememberingCell(width) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for cell in self.cells:
            cell.reset()
        results = []
        for t in range(x.size(1)):
            y = x[:, t]
            for cell in self.cells:
                y = cell(y)
            results.append(y)
        return torch.stack(results, 1)


@case("x.0", "x.1")
def cells_that_remember():
    return RememberingNetwork(), (randn(2, 5, 4),), (randn(3, 1, 4),), (randn(1, 9, 4),)


class MaskedLinear(nn.Linear):
    """A linear layer some of whose weights are put to zero before each use."""

    mask: Tensor

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.register_buffer("mask", torch.ones(outputs, inputs).tril())

    def forward(self, x: Tensor) -> Tensor:
        self.weight.data *= self.mask
        return super().forward(x)


@case("x.0")
def weights_masked_in_place():
    net = nn.Sequential(MaskedLinear(5, 6), nn.ReLU(), MaskedLinear(6, 4))
    return net, (randn(3, 5),), (randn(1, 5),), (randn(7, 5),)


@case("x.0", "x.1")
def embedding_of_limited_norm():
    net = nn.Embedding(20, 6, max_norm=1.0)
    return net, (randint(0, 20, (2, 5)),), (randint(0, 20, (1, 9)),), (randint(0, 20, (4, 3)),)
