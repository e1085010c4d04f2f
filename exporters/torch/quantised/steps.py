"""How far results may move because something was rounded to the other of two steps.

Quantised kernels sum up integers, a graph sums up floats: where a number lies between two steps, the two may round it
differently, and what is computed from it then differs by what a step is worth there. How much that is shows when the
module is run again with every number moved a little before it is rounded.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence

import torch

from entrepot.exporters.torch.quantised.mode import quantised
from entrepot.exporters.torch.running.eager import Eager
from entrepot.exporters.torch.translations import quantisation

_DRAWS = (0, 1, 2)
_BETWEEN = 2.0**-10
"""Of a step: a float32 of eight bits before the point has sixteen after it, of which a long sum loses some."""

_SIDES = 2
"""A number may be rounded up here and down there, each a step from what is in between."""


def unsteadiness(eager: Eager, tensors: Sequence[torch.Tensor]) -> list[float]:
    """How far each result may move; empty if nothing is quantised."""
    before, count = _run(eager, tensors, 0, 0)
    if not count:
        return []
    moved = [0.0] * len(before)
    for draw, sign in itertools.product(_DRAWS, (1, -1)):  # every number is moved both ways
        after, _ = _run(eager, tensors, draw, sign)
        moved = [max(most, _change(a, b)) for most, a, b in zip(moved, before, after, strict=True)]
    return [_SIDES * most for most in moved]


def _run(eager: Eager, tensors: Sequence[torch.Tensor], draw: int, sign: int) -> tuple[list[torch.Tensor], int]:
    with quantised(eager.module), _rounding(draw, sign) as roundings:
        return eager(tensors).tensors, len(roundings)


@contextlib.contextmanager
def _rounding(draw: int, sign: int) -> Iterator[list[int]]:
    """Inside, numbers are moved before they are rounded to steps; gives how many tensors were rounded."""
    roundings: list[int] = []
    generator = torch.Generator().manual_seed(draw)

    def moved(steps: torch.Tensor) -> torch.Tensor:
        roundings.append(steps.numel())
        sides = torch.randint(0, 2, steps.shape, generator=generator) * 2 - 1
        return torch.round(steps + sides * (sign * _BETWEEN))

    before = quantisation.rounding
    quantisation.rounding = moved
    try:
        yield roundings
    finally:
        quantisation.rounding = before


def _change(before: torch.Tensor, after: torch.Tensor) -> float:
    if before.shape != after.shape or not before.is_floating_point() or not before.numel():
        return 0.0
    return float((after.double() - before.double()).abs().nan_to_num().max())
