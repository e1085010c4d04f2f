"""Recurrent networks whose weights are quantised: torch quantises the sequence once, and the state at each step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from entrepot.exporters.torch.quantised.dynamic import rounded_by_range
from entrepot.exporters.torch.quantised.packed import Cell, Packed
from entrepot.exporters.torch.translations.layers import State, stacked
from entrepot.exporters.torch.upstream import scan
from entrepot.ir.errors import UnsupportedOpError

_Step: TypeAlias = Callable[[torch.Tensor, torch.Tensor, State], State]


def lstm_step(from_input: torch.Tensor, from_hidden: torch.Tensor, state: State) -> State:
    """The hidden state and the memory after one step."""
    let_in, forget, new, let_out = (from_input + from_hidden).chunk(4, -1)
    memory = forget.sigmoid() * state[1] + let_in.sigmoid() * new.tanh()
    return let_out.sigmoid() * memory.tanh(), memory


def gru_step(from_input: torch.Tensor, from_hidden: torch.Tensor, state: State) -> State:
    """The hidden state after one step."""
    inputs, hiddens = from_input.chunk(3, -1), from_hidden.chunk(3, -1)
    reset, keep = ((inputs[at] + hiddens[at]).sigmoid() for at in (0, 1))
    new = (inputs[2] + reset * hiddens[2]).tanh()
    return ((state[0] - new) * keep + new,)


def lstm(*args: Any, **kwargs: Any) -> Any:
    """``torch.quantized_lstm``."""
    x, states, cells, _biased, _layers, _dropout, _train, bidirectional, batch_first = _sequence(args)
    return stacked(functools.partial(_direction, lstm_step), x, states, cells, bidirectional, batch_first)


def gru(*args: Any, **kwargs: Any) -> Any:
    """``torch.quantized_gru``."""
    x, state, cells, _biased, _layers, _dropout, _train, bidirectional, batch_first = _sequence(args)
    return stacked(functools.partial(_direction, gru_step), x, (state,), cells, bidirectional, batch_first)


def _sequence(args: tuple[Any, ...]) -> tuple[Any, ...]:
    if isinstance(args[1], torch.Tensor) and isinstance(args[2], list | tuple) and isinstance(args[3], list):
        raise UnsupportedOpError(
            "packed sequences cannot go through a quantised network", hint="give a padded tensor to the layer"
        )
    return args


def _direction(step: _Step, x: torch.Tensor, initial: State, cell: Cell, backwards: bool) -> tuple[torch.Tensor, State]:
    weight, bias = cell.hidden.weight, cell.hidden.added

    def one(state: State, each: torch.Tensor) -> tuple[State, torch.Tensor]:
        after = step(each, F.linear(_rounded(state[0], cell), weight, bias), state)
        return after, after[0].clone()  # a scan may not return the same tensor twice

    outside = F.linear(_rounded(x, cell), cell.input.weight, cell.input.added)
    final, output = scan(one, tuple(each.clone() for each in initial), outside, reverse=backwards)
    return output, tuple(final)


def _rounded(x: torch.Tensor, cell: Cell) -> torch.Tensor:
    return x if cell.hidden.held.kind is None else rounded_by_range(x, reduced=cell.reduced)


def _part(x: torch.Tensor, packed: Packed) -> torch.Tensor:
    """What a single cell adds to its gates; the biases are packed with the weights."""
    x = x if packed.held.kind is None else rounded_by_range(x, reduced=True)
    return F.linear(x, packed.weight, packed.added)


def _cell(step: _Step) -> Callable[..., Any]:
    def run(input: torch.Tensor, hx: Any, w_ih: Packed, w_hh: Packed, **shown: torch.Tensor) -> State:
        state = tuple(hx) if isinstance(hx, list | tuple) else (hx,)
        return step(_part(input, w_ih), _part(state[0], w_hh), state)

    return run


def _only(step: _Step) -> Callable[..., Any]:
    return lambda x, **given: _cell(step)(x, **given)[0]


CELLS: dict[str, Callable[..., Any]] = {
    "quantized_lstm_cell_dynamic": _cell(lstm_step),
    "quantized_gru_cell_dynamic": _only(gru_step),
    "quantized_rnn_tanh_cell_dynamic": _only(lambda x, h, state: ((x + h).tanh(),)),
    "quantized_rnn_relu_cell_dynamic": _only(lambda x, h, state: ((x + h).relu(),)),
}
"""Single cells, by operator."""
