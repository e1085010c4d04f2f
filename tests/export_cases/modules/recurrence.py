"""Python loops over a length, and recurrent layers: what a capture unrolls."""

from __future__ import annotations

import torch
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class CellLoop(nn.Module):
    """A cell stepped over ``range(x.shape[1])``, its states stacked."""

    def __init__(self, cell: nn.Module, width: int) -> None:
        super().__init__()
        self.cell, self.width = cell, width

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], self.width)
        states = []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            states.append(h)
        return torch.stack(states, dim=1)


@case("x.0", "x.1")
def gru_cell_over_range():
    return CellLoop(nn.GRUCell(6, 8), 8), (randn(2, 5, 6),), (randn(3, 9, 6),), (randn(1, 2, 6),)


@case("x.0", "x.1")
def rnn_cell_over_range():
    return CellLoop(nn.RNNCell(6, 8), 8), (randn(2, 5, 6),), (randn(3, 9, 6),)


class LstmCellLoop(nn.Module):
    """Two states, and only the last output is returned."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTMCell(6, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(0), 8)
        c = torch.zeros(x.size(0), 8)
        for step in range(x.size(1)):
            h, c = self.cell(x[:, step, :], (h, c))
        return self.head(h)


@case("x.0", "x.1")
def lstm_cell_last_state():
    return LstmCellLoop(), (randn(2, 5, 6),), (randn(4, 8, 6),)


class Exponential(nn.Module):
    """An exponential moving average, iterating a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor(0.3))

    def forward(self, x: Tensor) -> Tensor:
        outputs, state = [], x[0]
        for frame in x:
            state = self.alpha * frame + (1 - self.alpha) * state
            outputs.append(state)
        return torch.stack(outputs)


@case("x.0", "x.1")
def iterating_a_tensor():
    return Exponential(), (randn(5, 3),), (randn(8, 4),)


class Unbound(nn.Module):
    """``unbind`` over time and ``enumerate``."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros_like(x[:, 0])
        outputs = []
        for t, frame in enumerate(x.unbind(1)):
            h = torch.tanh(self.mix(h) + frame) * (1.0 / (t + 1))
            outputs.append(h.unsqueeze(1))
        return torch.cat(outputs, 1)


@case("x.0", "x.1")
def unbound_and_enumerated():
    return Unbound(), (randn(2, 5, 4),), (randn(3, 7, 4),)


class Backwards(nn.Module):
    """Two directions by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.forth, self.back = nn.GRUCell(4, 5), nn.GRUCell(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        left = right = x.new_zeros(x.shape[0], 5)
        lefts, rights = [], []
        for t in range(length):
            left = self.forth(x[:, t], left)
            lefts.append(left)
        for t in range(length - 1, -1, -1):
            right = self.back(x[:, t], right)
            rights.append(right)
        return torch.cat([torch.stack(lefts, 1), torch.stack(rights[::-1], 1)], -1)


@case("x.0", "x.1")
def both_directions_by_hand():
    return Backwards(), (randn(2, 5, 4),), (randn(3, 8, 4),)


class Layer(nn.Module):
    """A recurrent layer and a head."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.layer(x)
        return y


def _layer(layer: nn.Module) -> tuple:
    return Layer(layer), (randn(2, 5, 4),), (randn(3, 9, 4),), (randn(1, 1, 4),)


@case("x.0", "x.1")
def lstm_two_layers():
    return _layer(nn.LSTM(4, 6, num_layers=2, batch_first=True))


@case("x.0", "x.1")
def lstm_bidirectional():
    return _layer(nn.LSTM(4, 6, bidirectional=True, batch_first=True))


@case("x.0", "x.1")
def gru_bidirectional():
    return _layer(nn.GRU(4, 6, num_layers=2, bidirectional=True, batch_first=True))


@case("x.0", "x.1")
def rnn_relu():
    return _layer(nn.RNN(4, 6, nonlinearity="relu", batch_first=True))


@case("x.0", "x.1")
def lstm_projected():
    return _layer(nn.LSTM(4, 6, proj_size=3, batch_first=True))


@case("x.0", "x.1", "h.1")
def gru_time_first_with_state():
    return nn.GRU(4, 6), (randn(5, 2, 4), randn(1, 2, 6)), (randn(9, 3, 4), randn(1, 3, 6))


@case("x.0")
def lstm_without_batch():
    return nn.LSTM(4, 6), (randn(5, 4),), (randn(8, 4),)


class ConvLstm(nn.Module):
    """A convolutional recurrence over frames."""

    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.Conv2d(3 + 4, 16, 3, padding=1)

    def forward(self, video: Tensor) -> Tensor:
        batch, frames, _, height, width = video.shape
        h = video.new_zeros(batch, 4, height, width)
        c = torch.zeros_like(h)
        for t in range(frames):
            i, f, o, g = self.gates(torch.cat([video[:, t], h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return h


@case("video.0", "video.1", "video.3", "video.4")
def conv_lstm():
    return ConvLstm(), (randn(2, 4, 3, 6, 5),), (randn(1, 6, 3, 8, 7),)


class Seq2Seq(nn.Module):
    """An encoder, and a decoder that attends at every step, with teacher forcing."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 6)
        self.encoder, self.cell = nn.GRU(6, 8, batch_first=True), nn.GRUCell(6 + 8, 8)
        self.head = nn.Linear(8, 20)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, last = self.encoder(self.embed(source))
        h, logits = last[0], []
        for t in range(target.shape[1]):
            weights = torch.softmax((memory @ h.unsqueeze(-1)).squeeze(-1), dim=-1)
            context = (weights.unsqueeze(1) @ memory).squeeze(1)
            h = self.cell(torch.cat([self.embed(target[:, t]), context], -1), h)
            logits.append(self.head(h))
        return torch.stack(logits, 1)


def _ids(*shape: int, high: int = 20) -> Tensor:
    return torch.randint(0, high, shape)


@case("source.0", "source.1", "target.0", "target.1")
def seq2seq_with_attention():
    return Seq2Seq(), (_ids(2, 6), _ids(2, 4)), (_ids(3, 9), _ids(3, 7))


class Sentence(nn.Module):
    """An LSTM classifier over embeddings that takes the last state of both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 6, padding_idx=0)
        self.lstm, self.head = nn.LSTM(6, 8, bidirectional=True, batch_first=True), nn.Linear(16, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        _, (h, _) = self.lstm(self.embed(tokens))
        return self.head(torch.cat([h[-2], h[-1]], dim=1))


@case("tokens.0", "tokens.1")
def text_classifier():
    return Sentence(), (_ids(2, 7),), (_ids(4, 11),)


class GatedUnit(nn.Module):
    """A gated recurrence over states that are written row by row, behind a padding mask that may be too short."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.gate, self.layers = nn.Linear(width, width), [None, "gated"]

    def first(self) -> int:
        return next(at for at, layer in enumerate(self.layers) if layer is not None)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        if self.first() != 1:
            return x
        if (missing := x.shape[1] - mask.shape[1]) > 0:
            mask = torch.nn.functional.pad(mask, (0, missing))
        gate = torch.sigmoid(self.gate(x)) * mask[:, : x.shape[1], None]
        state, states = torch.zeros_like(x[:, 0]), torch.zeros_like(x)
        for t in range(x.shape[1]):
            state = gate[:, t] * state + x[:, t]
            states[:, t] = state
        return states


@case("x.0", "x.1", "mask.0", "mask.1")
def gated_unit_with_a_mask():
    ones = torch.ones
    return GatedUnit(), (randn(2, 7, 6), ones(2, 7)), (randn(3, 11, 6), ones(3, 11))


class Framed(nn.Module):
    """States between the first and the last one, in a list that is written with a star."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        first = state = x.mean(1)
        states = []
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
            states.append(state)
        return torch.stack([first, *states, 2 * state], 1)


@case("x.0", "x.1")
def states_between_others():
    return Framed(), (randn(2, 5, 4),), (randn(3, 9, 4),)
