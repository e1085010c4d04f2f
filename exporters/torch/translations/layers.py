"""The walk over the layers of a recurrent network, and the directions of each, for networks that are written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

State: TypeAlias = tuple[torch.Tensor, ...]
Direction: TypeAlias = Callable[[torch.Tensor, State, Any, bool], tuple[torch.Tensor, State]]


def stacked(
    run: Direction,
    x: torch.Tensor,
    states: Sequence[torch.Tensor],
    cells: Sequence[Any],
    bidirectional: bool,
    batch_first: bool,
) -> State:
    """The output of the last layer and the states after the last step, as torch's networks return them.

    Args:
        run: One layer in one direction: the sequence, the states before it, its cell, and whether it goes backwards.
        x: The sequence, [length, batch, width] or, with ``batch_first``, [batch, length, width].
        states: The states before the first step, [cells, batch, width] each.
        cells: The weights of each layer in each direction, a layer's directions next to each other.
        bidirectional: Whether each layer has two directions.
        batch_first: Where the batch is in ``x`` and in the output.
    """
    directions = 2 if bidirectional else 1
    y = x.transpose(0, 1) if batch_first else x
    finals: list[State] = []
    for start in range(0, len(cells), directions):
        outputs = []
        for at in range(start, start + directions):
            output, final = run(y, tuple(state[at] for state in states), cells[at], at > start)
            outputs.append(output)
            finals.append(final)
        y = torch.cat(outputs, -1)
    ends = (torch.stack(parts) for parts in zip(*finals, strict=True))
    return (y.transpose(0, 1) if batch_first else y, *ends)
