"""Queues that are filled in a loop: what they hold, as one tensor."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.lists import Piled
from entrepot.exporters.torch.rewriting.sequences import rows_between
from entrepot.exporters.torch.rewriting.uneven import Lengthened


class Queue(deque[Any]):
    """A copy of a queue, which knows whose.

    Attributes:
        origin: What it is a copy of.
    """

    origin: Any = None


class Queued(Piled):
    """A queue that is given items in a loop, all alike, as one tensor.

    Args:
        tensor: The items along a new first axis.
        most: How many items it holds at most, if that is said: more push those at the other end out.
        numbers: Whether they are Python's numbers.
    """

    def __init__(self, tensor: torch.Tensor, most: int | None = None, *, numbers: bool = False) -> None:
        super().__init__(tensor, numbers=numbers)
        self.maxlen = most

    @classmethod
    def of_queue(cls, items: Iterable[Any], most: int | None, like: torch.Tensor, *, numbers: bool) -> Queued:
        """With what a queue holds before the loop, and one of the items to come."""
        made = cls(torch.empty([0, *like.shape], dtype=like.dtype), most, numbers=numbers)
        made.extend(items)
        return made

    def joined(self, parts: Sequence[Any]) -> Queued:
        """The same with other parts."""
        return Queued(parts[0], self.maxlen, numbers=self.numbers)

    def appendleft(self, item: Any) -> None:
        """Put an item at the front."""
        self.insert(0, item)
        if self.maxlen is not None:
            self.tensor = rows_between(self.tensor, slice(0, self.maxlen))

    def popleft(self) -> Any:
        """Take out the first item."""
        return self.pop(0)

    def _longer(self, more: torch.Tensor) -> None:
        super()._longer(more)
        if self.maxlen is not None:
            self.tensor = rows_between(self.tensor, slice(-self.maxlen, None))


class QueuedPieces(Lengthened):
    """A queue that is given pieces of different sizes in a loop, as one tensor."""

    maxlen: int | None = None

    @classmethod
    def of_queue(cls, items: Iterable[torch.Tensor], most: int | None, like: Any, axes: Sequence[int]) -> QueuedPieces:
        """With what a queue holds before the loop, and one of the pieces to come."""
        made = cls.of([], like, axes)
        made.maxlen = most
        made.extend(items)
        return made

    def joined(self, parts: Sequence[Any]) -> QueuedPieces:
        """The same with other parts."""
        made = QueuedPieces(parts[0], parts[1], self.axes)
        made.maxlen = self.maxlen
        return made

    def _join(self, tensor: torch.Tensor, sizes: torch.Tensor) -> None:
        super()._join(tensor, sizes)
        if self.maxlen is not None:
            self.sizes = rows_between(self.sizes, slice(-self.maxlen, None))
            kept = torch.arange(self.sizes.sum().item())
            self.tensor = self.tensor.index_select(self._place, kept + (self.tensor.shape[self._place] - kept.shape[0]))
