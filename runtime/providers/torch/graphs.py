"""Work that is captured once for each choice of shapes, and then done again by one call."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from entrepot.runtime.dividing.copies import COPIES
from entrepot.runtime.planning.plan import Step
from entrepot.runtime.providers.torch.accelerator import Accelerator, Replay

_WARM = 2
"""Runs before work is captured: libraries choose their kernels, and take memory, in the first ones."""

_KEPT = 8
"""Choices of shapes that are kept; each holds the memory of a whole run."""

_COUNTED = ("Compress", "NonZero", "Unique")


def reason_against(steps: Iterable[Step]) -> str:
    """Why a part cannot be captured; empty if it can: nothing on the way may wait for the device, or vary unseen."""
    for step in steps:
        if step.domain == COPIES and step.op_type == "ToHost":
            return f"{step.where}: the host reads what the device computes"
        if step.domain == COPIES and step.op_type == "ToDevice":
            return f"{step.where}: the host computes what the device reads"
        if step.is_a(*_COUNTED):
            return f"{step.where}: how much it makes depends on the data"
        if step.traits.random:
            return f"{step.where}: it draws other numbers in each run"
    return ""


@dataclass
class _Captured:
    """Captured work, and the memory that it reads and writes."""

    given: list[Any]
    results: tuple[Any, ...]
    replay: Replay

    def run(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        for own, fed in zip(self.given, inputs, strict=True):
            if isinstance(own, Tensor):
                own.copy_(fed)
        self.replay()
        return tuple(_own(result) for result in self.results)


class Graphs:
    """A part that replays what it did before with inputs of the same shapes.

    Args:
        run: The part, on tensors; and on NumPy arrays where it takes sizes from the host.
        accelerator: Captures it.
        reason: Why it cannot be captured; empty if it can.
    """

    def __init__(self, run: Callable[..., tuple[Any, ...]], accelerator: Accelerator, reason: str) -> None:
        self._run = run
        self._accelerator = accelerator
        self._reason = reason if accelerator.captures else f"{accelerator.device.type} captures nothing"
        self._runs: OrderedDict[tuple[Any, ...], int | _Captured] = OrderedDict()

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """The part's outputs."""
        signature = None if self._reason else _signature(inputs)
        if signature is None:
            return self._run(*inputs)
        known = self._runs.pop(signature, 0)
        if isinstance(known, int) and known >= _WARM:
            known = self._captured(inputs)
        self._runs[signature] = known + 1 if isinstance(known, int) else known
        while len(self._runs) > _KEPT:
            self._runs.popitem(last=False)
        return known.run(inputs) if isinstance(known, _Captured) else self._run(*inputs)

    def _captured(self, inputs: Sequence[Any]) -> _Captured:
        given = [each.clone() if isinstance(each, Tensor) else each for each in inputs]
        replay, results = self._accelerator.capture(lambda: self._run(*given))
        return _Captured(given, results, replay)

    def remark(self) -> str:
        """Why it is not captured; empty if it is."""
        return f"not captured as a graph: {self._reason}" if self._reason else ""

    def trim(self) -> None:
        """Forget what was captured, with its memory."""
        self._runs.clear()


def _signature(inputs: Sequence[Any]) -> tuple[Any, ...] | None:
    """Equal for runs that do the same work; ``None`` for sequences and optionals."""
    parts: list[Any] = []
    for each in inputs:
        if isinstance(each, Tensor):
            parts.append((tuple(each.shape), each.dtype, each.stride()))
        elif isinstance(each, np.ndarray) and each.dtype.kind != "O":
            parts.append((each.shape, each.dtype.str, each.tobytes()))  # its values decide what is done
        else:
            return None
    return tuple(parts)


def _own(result: Any) -> Any:
    """A result that the next run does not write to."""
    if isinstance(result, list):
        return [_own(member) for member in result]
    return result.clone() if isinstance(result, Tensor) else result
