"""Measures ways to compute the same, and takes the fastest."""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch

from entrepot.runtime import blas
from entrepot.runtime.providers.torch import vectors
from entrepot.runtime.providers.torch.measuring.choices import Choices, folder
from entrepot.runtime.threads import available

Ways: TypeAlias = Mapping[str, Callable[[], object]]
"""By name: computes the same as all others."""

_CLEARLY = 0.97
"""What a way must take of the usual one's time to be taken instead: less would be noise."""

_ROUNDS = (5, 50)
"""How often all ways take turns, at least and at most."""

_LONG = 0.1
"""Seconds after which there is no further round."""

_CACHE = 1 << 25
"""Bytes that are read before each measurement: in a network, weights have left the cache since they were last used."""


class Chooser:
    """Takes the fastest of several ways, once for each computation on each kind of machine.

    Args:
        choices: What is known from before.
    """

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._taken: dict[str, str] = {}

    @classmethod
    def of_this_machine(cls, threads: int | None) -> Chooser:
        """With what was kept on this kind of machine for as many threads."""
        return cls(Choices(folder(), machine(threads)))

    def fastest(self, computation: str, ways: Ways, usual: str) -> str:
        """The name of a way.

        Args:
            computation: What is computed, with its sizes, in words that mean the same in every model.
            ways: At least one.
            usual: What sizes alone would decide, which is taken unless another is clearly faster.
        """
        kept = self._choices.get(computation)
        if kept not in ways:
            kept = measured(ways, usual)
            self._choices.put(computation, kept)
        self._taken[computation] = kept
        return kept

    def remark(self) -> str:
        """What was chosen, and where it is kept; empty if nothing was."""
        if not self._taken:
            return ""
        counts = Counter(self._taken.values())
        told = ", ".join(f"{count} x {way}" for way, count in counts.most_common())
        problem = self._choices.problem
        return f"measured on this machine: {told}; " + (
            f"known to this session alone: {problem}" if problem else f"kept in '{self._choices.path}'"
        )


def measured(ways: Ways, usual: str) -> str:
    """The fastest by the least time of several rounds, in which ways take turns so that a busy machine slows all."""
    if len(ways) == 1:
        return usual
    for run in ways.values():
        run()  # memory is taken and weights are arranged before the clock runs
    others_data = torch.ones(_CACHE // 4)
    least = dict.fromkeys(ways, float("inf"))
    began, (fewest, most) = time.perf_counter(), _ROUNDS
    for count in range(most):
        if count >= fewest and time.perf_counter() - began > _LONG:
            break
        for name, run in ways.items():
            others_data.sum()
            start = time.perf_counter()
            run()
            least[name] = min(least[name], time.perf_counter() - start)
    best = min(ways, key=least.__getitem__)
    return best if least[best] < _CLEARLY * least[usual] else usual


def machine(threads: int | None) -> dict[str, str]:
    """All that decides which way is fastest, and is no size.

    Args:
        threads: What one run may use; ``None`` for all that the process has.
    """
    return {
        "processor": vectors.told("model name") or platform.processor() or platform.machine(),
        "torch": torch.__version__,
        "BLAS": str(blas.choice()),
        "vectors": torch.backends.cpu.get_cpu_capability(),
        "threads": f"{threads or available()}, torch {torch.get_num_threads()}",
    }
