"""Cells of recurrent networks without writes: torch (2.13) takes them apart into operators that write.

A program that writes is traced anew as a whole before it is translated, which costs more than its capture.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear

aten = torch.ops.aten


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of a GRU."""
    given, held = linear(input, w_ih, b_ih).chunk(3, 1), linear(hx, w_hh, b_hh).chunk(3, 1)
    reset, update = (held[at] + given[at] for at in (0, 1))
    new = (given[2] + held[2] * reset.sigmoid()).tanh()
    return (hx - new) * update.sigmoid() + new


def lstm_cell(
    input: Tensor,
    hx: tuple[Tensor, Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM."""
    held, cell = hx
    taken, kept, new, shown = _sums(input, held, w_ih, w_hh, b_ih, b_hh).chunk(4, 1)
    cell = kept.sigmoid() * cell + taken.sigmoid() * new.tanh()
    return shown.sigmoid() * cell.tanh(), cell


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of an RNN."""
    return _sums(input, hx, w_ih, w_hh, b_ih, b_hh).tanh()


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """The same, with another activation."""
    return _sums(input, hx, w_ih, w_hh, b_ih, b_hh).relu()


def _sums(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None) -> Tensor:
    return linear(hx, w_hh, b_hh) + linear(input, w_ih, b_ih)


DECOMPOSITIONS = {
    aten.gru_cell.default: gru_cell,
    aten.lstm_cell.default: lstm_cell,
    aten.rnn_tanh_cell.default: rnn_tanh_cell,
    aten.rnn_relu_cell.default: rnn_relu_cell,
}
