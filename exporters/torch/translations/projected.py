"""LSTM with projection, for which ONNX has no operator: a Scan of its step."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from entrepot.exporters.torch.upstream import scan

_State = tuple[torch.Tensor, torch.Tensor]


def projected_lstm(
    x: torch.Tensor,
    states: Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
    biases: bool,
    layers: int,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What ``torch.lstm`` returns for weights that end with a projection of the hidden state."""
    per_cell = 5 if biases else 3
    directions = 2 if bidirectional else 1
    y = x.transpose(0, 1) if batch_first else x
    finals: list[_State] = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            cell = layer * directions + direction
            parts = weights[per_cell * cell : per_cell * (cell + 1)]
            output, final = _direction(y, (states[0][cell], states[1][cell]), parts, backwards=direction == 1)
            outputs.append(output)
            finals.append(final)
        y = torch.cat(outputs, -1)
    hidden, memory = (torch.stack(parts) for parts in zip(*finals, strict=True))
    return (y.transpose(0, 1) if batch_first else y), hidden, memory


def _direction(
    x: torch.Tensor, initial: _State, weights: Sequence[torch.Tensor], *, backwards: bool
) -> tuple[torch.Tensor, _State]:
    from_input, from_hidden, *biases, projection = weights

    def step(state: _State, each: torch.Tensor) -> tuple[_State, torch.Tensor]:
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
