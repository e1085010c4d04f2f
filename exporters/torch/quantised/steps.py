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

_DRAWS = tuple(itertools.product((0, 1, 2), (1.0, -1.0)))
"""Seeds, and both signs, so that every number is moved both ways."""

_BETWEEN = 2.0**-7
"""Of a step. A float32 of eight bits before the point has sixteen after it, of which a long sum loses some; and
onnxruntime (1.31) rounds the bias of a product to the step of that product, of which a result has a hundred or more."""

_SIDES = 2
"""A number may be rounded up here and down there, each a step from what is in between."""


def unsteadiness(eager: Eager, tensors: Sequence[torch.Tensor]) -> list[float]:
    """How far each result may move; empty if nothing is quantised.

    First every number is moved a little. What is rounded further on then moves more, by the steps that others went to
    the other side; by that much it is moved in the end, wherever it lies, since others may go there elsewhere.
    """
    before, exact = _run(eager, tensors, _Rounding())
    if not exact:
        return []
    reach = [_BETWEEN] * len(exact)
    for draw, sign in _DRAWS:
        _, moved = _run(eager, tensors, _Rounding(draw, sign, [_BETWEEN] * len(exact)))
        reach = [max(most, _change(a, b)) for most, a, b in zip(reach, exact, moved, strict=False)]
    most = [0.0] * len(before)
    for draw, sign in _DRAWS:
        after, _ = _run(eager, tensors, _Rounding(draw, sign, reach))
        most = [max(far, _change(a, b)) for far, a, b in zip(most, before, after, strict=True)]
    return [_SIDES * far for far in most]


def _run(
    eager: Eager, tensors: Sequence[torch.Tensor], rounding: _Rounding
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The results, and everything that was rounded on the way, as it was before."""
    with quantised(eager.module), _rounding(rounding):
        return eager(tensors).tensors, rounding.seen


class _Rounding:
    """Rounds what it has moved, each time by as much as it is told."""

    def __init__(self, draw: int = 0, sign: float = 0.0, reach: Sequence[float] = ()) -> None:
        self._generator = torch.Generator().manual_seed(draw)
        self._sign = sign
        self._reach = reach
        self.seen: list[torch.Tensor] = []

    def __call__(self, steps: torch.Tensor) -> torch.Tensor:
        at = len(self.seen)
        self.seen.append(steps)
        sides = torch.randint(0, 2, steps.shape, generator=self._generator) * 2 - 1
        far = self._reach[at] if at < len(self._reach) else 0.0
        return torch.round(steps + sides * (self._sign * far))


@contextlib.contextmanager
def _rounding(rounding: _Rounding) -> Iterator[None]:
    """Inside, this is how numbers are rounded to steps."""
    before = quantisation.rounding
    quantisation.rounding = rounding
    try:
        yield
    finally:
        quantisation.rounding = before


def _change(before: torch.Tensor, after: torch.Tensor) -> float:
    if before.shape != after.shape or not before.is_floating_point() or not before.numel():
        return 0.0
    return float((after.double() - before.double()).abs().nan_to_num().max())
