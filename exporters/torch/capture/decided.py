"""Python that branches on values where nothing else can be made of it: as in the sample, which the graph checks.

A run on tensors with values notes what Python reads of them. The capture then reads the same, and the truths that were
read are results of the program, of which ``exporters/value_checks.py`` makes checks.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import torch

from entrepot.exporters.exporter import Required
from entrepot.exporters.torch.running.deciding import TRUTHS, line_of_call

_FOLLOWED: ContextVar[Decisions | None] = ContextVar("_FOLLOWED", default=None)


class Decisions:
    """What Python decides while a module is captured.

    Args:
        spot: Calls the module on tensors with values, and says what it decided.

    Attributes:
        taken: What the last capture relies on, in order.
    """

    def __init__(self, spot: Callable[[Sequence[torch.Tensor]], Sequence[Required]]) -> None:
        self._spot = spot
        self._spotted: dict[str, list[bool]] = {}
        self._visits: Counter[str] = Counter()
        self.taken: list[Required] = []
        self.conditions: list[torch.Tensor] = []

    def look(self, tensors: Sequence[torch.Tensor]) -> None:
        """Note what is decided for these tensors, which are to be captured next."""
        self._spotted = defaultdict(list)
        for decision in self._spot(tensors):
            self._spotted[decision.line].append(decision.holds)

    def begin(self) -> None:
        """At the start of a call of what is captured."""
        self._visits.clear()
        self.taken.clear()
        self.conditions.clear()

    def answer(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bool | None:
        """What was read here with values; ``None`` if it was not, or is no truth."""
        truth = TRUTHS.get(name)
        condition = None if truth is None else truth(*args, **kwargs)
        if condition is None:
            return None
        line = line_of_call()
        known = self._spotted.get(line, [])
        if self._visits[line] >= len(known):
            return None
        holds = known[self._visits[line]]
        self._visits[line] += 1
        self.taken.append(Required(line, holds))
        self.conditions.append(condition)
        return holds


@contextlib.contextmanager
def deciding(spot: Callable[[Sequence[torch.Tensor]], Sequence[Required]]) -> Iterator[Decisions]:
    """Inside, captures decide as a run on their tensors does; see ``Decisions``."""
    decisions = Decisions(spot)
    token = _FOLLOWED.set(decisions)
    try:
        yield decisions
    finally:
        _FOLLOWED.reset(token)


def decisions_followed() -> Decisions | None:
    """What the captures made now decide by, if that is wanted."""
    return _FOLLOWED.get()
