"""How large the values of a tensor typically are, so that a tolerance can follow them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from entrepot.parity.blocks import blocks

_FILL = 1000.0
"""How many times larger than everything else an extreme value must be to count as a fill."""


def typical_magnitude(array: np.ndarray) -> float:
    """Root mean square of the finite elements; 0 when there are none or all are zero.

    The lowest and the highest value (all their occurrences) are left out where they exceed the rest
    by a factor of 1000: a mask filled with -1e9 or a dtype's lowest value says nothing about the values that matter.
    """
    low, high = _range(array)
    if low > high:
        return 0.0
    extremes = {low: 0, high: 0}
    rest = _Mean()
    for (piece,) in blocks(array):
        values = _finite(piece)
        for extreme in extremes:
            extremes[extreme] += int(np.count_nonzero(values == extreme))
        rest.add(values[(values != low) & (values != high)])
    known = rest.rms or min((abs(extreme) for extreme in extremes if extreme), default=0.0)
    for extreme, count in extremes.items():
        if abs(extreme) <= _FILL * known:
            rest.add(np.array([extreme]), count)
    return rest.rms


def _range(array: np.ndarray) -> tuple[float, float]:
    low, high = math.inf, -math.inf
    for (piece,) in blocks(array):
        values = _finite(piece)
        if values.size:
            low, high = min(low, float(values.min())), max(high, float(values.max()))
    return low, high


def _finite(piece: np.ndarray) -> np.ndarray:
    values = np.abs(piece) if piece.dtype.kind == "c" else piece
    values = values.astype(np.float64)
    return values[np.isfinite(values)]


@dataclass
class _Mean:
    """A root mean square that neither overflows nor underflows: the sum is kept in units of ``peak``."""

    peak: float = 0.0
    total: float = 0.0
    count: int = 0

    def add(self, values: np.ndarray, times: int = 1) -> None:
        self.count += values.size * times
        peak = float(np.abs(values).max(initial=0.0))
        if peak > self.peak:
            self.total *= (self.peak / peak) ** 2
            self.peak = peak
        if peak:
            self.total += times * float(np.square(values / self.peak).sum())

    @property
    def rms(self) -> float:
        return self.peak * math.sqrt(self.total / self.count) if self.count else 0.0
