"""LSTM with projection, for which ONNX has no operator: a Scan of its step."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

from entrepot.exporters.torch.translations.layers import State, stacked
from entrepot.exporters.torch.upstream import scan


def projected_lstm(
    x: torch.Tensor,
    states: Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
    biases: bool,
    bidirectional: bool,
    batch_first: bool,
    lengths: torch.Tensor | None = None,
) -> tuple[torch.Tensor, ...]:
    """What ``torch.lstm`` returns for weights that end with a projection of the hidden state.

    Where rows have lengths of their own, a state stays what it is at the steps that a row does not have.
    """
    per_cell = 5 if biases else 3
    cells = [weights[start : start + per_cell] for start in range(0, len(weights), per_cell)]
    steps = x.shape[1 if batch_first else 0]
    inside = None if lengths is None else (torch.arange(steps).unsqueeze(1) < lengths).unsqueeze(2)
    return stacked(functools.partial(_direction, inside), x, states, cells, bidirectional, batch_first)


def _direction(
    inside: torch.Tensor | None, x: torch.Tensor, initial: State, weights: Sequence[torch.Tensor], backwards: bool
) -> tuple[torch.Tensor, State]:
    from_input, from_hidden, *biases, projection = weights

    def step(state: State, given: State) -> tuple[State, torch.Tensor]:
        each, *present = given
        gates = each + state[0] @ from_hidden.mT
        let_in, forget, new, let_out = gates.chunk(4, -1)
        memory = forget.sigmoid() * state[1] + let_in.sigmoid() * new.tanh()
        hidden = (let_out.sigmoid() * memory.tanh()) @ projection.mT
        for here in present:
            hidden, memory = torch.where(here, hidden, state[0]), torch.where(here, memory, state[1])
        return (hidden, memory), hidden.clone()  # a scan may not return the same tensor twice

    outside = x @ from_input.mT
    for bias in biases:
        outside = outside + bias
    given = (outside,) if inside is None else (outside, inside)
    final, output = scan(step, (initial[0].clone(), initial[1].clone()), given, reverse=backwards)
    return output, (final[0], final[1])
