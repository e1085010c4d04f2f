"""LSTM with projection, for which ONNX has no operator: a Scan of its step."""

from __future__ import annotations

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
) -> tuple[torch.Tensor, ...]:
    """What ``torch.lstm`` returns for weights that end with a projection of the hidden state."""
    per_cell = 5 if biases else 3
    cells = [weights[start : start + per_cell] for start in range(0, len(weights), per_cell)]
    return stacked(_direction, x, states, cells, bidirectional, batch_first)


def _direction(
    x: torch.Tensor, initial: State, weights: Sequence[torch.Tensor], backwards: bool
) -> tuple[torch.Tensor, State]:
    from_input, from_hidden, *biases, projection = weights

    def step(state: State, each: torch.Tensor) -> tuple[State, torch.Tensor]:
        gates = each + state[0] @ from_hidden.mT
        let_in, forget, new, let_out = gates.chunk(4, -1)
        memory = forget.sigmoid() * state[1] + let_in.sigmoid() * new.tanh()
        hidden = (let_out.sigmoid() * memory.tanh()) @ projection.mT
        return (hidden, memory), hidden.clone()  # a scan may not return the same tensor twice

    outside = x @ from_input.mT
    for bias in biases:
        outside = outside + bias
    final, output = scan(step, (initial[0].clone(), initial[1].clone()), outside, reverse=backwards)
    return output, (final[0], final[1])
