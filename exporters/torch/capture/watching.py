"""A capture that is ended where it turns out to be of no use, instead of being made to its end and left alone."""

from __future__ import annotations

import contextlib
import math
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch

from entrepot.exporters.axes.conditions import holding_range
from entrepot.exporters.axes.groups import Group
from entrepot.exporters.torch.running.spotting import user_line
from entrepot.exporters.torch.upstream import SizeNotes, conditions_told

_PATIENCE = 12
"""Nodes that are captured after the first end, or more: the end of the width of a picture is found beside that of its
height, perhaps in the next branch. With another axis that ends, each capture takes as long as this one."""

_SHARE = 4
"""Of so many nodes that were captured, one more is captured after the end: little beside a second capture."""

_NEAR = 40
"""Steps to either side."""


class CaptureEnded(BaseException):
    """Ends a capture."""


@dataclass(frozen=True)
class End:
    """Where a group ends in a capture.

    Attributes:
        group: It.
        least: The smallest size for which a condition holds.
        most: The largest.
        size: That of the sample.
        pinned: Whether the capture takes no other.
        line: The user's line that asks.
    """

    group: Group
    least: int
    most: int
    size: int
    pinned: bool
    line: str


class Watch:
    """Looks at the conditions on sizes while a capture is made.

    Args:
        groups: Those whose sizes are looked at.
        tensors: What is captured.
        useless: Whether a capture is of no use that ends a group so.

    Attributes:
        ends: What was found, by symbol.
        made: How many nodes there were before.
    """

    def __init__(
        self, groups: Sequence[Group], tensors: Sequence[torch.Tensor], useless: Callable[[End], bool]
    ) -> None:
        self._groups = {axis: group for group in groups for axis in group.axes}
        self._tensors = tensors
        self._useless = useless
        self.ends: dict[str, End] = {}
        self.begin_again()

    def begin_again(self) -> None:
        """Forget a capture that failed."""
        self.made, self._left = 0, _PATIENCE
        self.ends.clear()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, a capture ends by ``CaptureEnded`` soon after an end was found."""
        with conditions_told(self._told):
            yield

    def node_made(self) -> None:
        """To be called for each node of the capture."""
        if not self.ends:
            self.made += 1
            self._left = max(_PATIENCE, self.made // _SHARE)
            return
        self._left -= 1
        if self._left < 0:
            raise CaptureEnded

    def _told(self, condition: Any, notes: Callable[[], SizeNotes]) -> None:
        symbols: Collection[Any] = condition.free_symbols
        if len(symbols) != 1:
            return
        (symbol,), known = symbols, notes()
        axis = known.axes.get(str(symbol))
        group = None if axis is None else self._groups.get(axis)
        if axis is None or group is None or group.symbol in self.ends:
            return
        present = known.sizes.get(symbol)
        if present is None or present != self._tensors[axis[0]].shape[axis[1]]:
            return
        text = str(condition.xreplace({symbol: sympy.Symbol("size", integer=True)}))
        least, most = holding_range(text, present) or (0, math.inf)
        if most == math.inf:
            return
        pinned = not any(condition.xreplace({symbol: sympy.Integer(size)}) for size in _others(group, present))
        end = End(group, least, int(most), present, pinned, "")
        if self._useless(end):
            self.ends[group.symbol] = replace(end, line=user_line(traceback.extract_stack()))


def _others(group: Group, present: int) -> Iterator[int]:
    """Sizes that a group has beside the present one."""
    near = (present + count * group.step for count in range(-_NEAR, _NEAR))
    return (size for size in [*group.sizes, *near] if size > 1 and size != present)
