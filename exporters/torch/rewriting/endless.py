"""Iterables that need not end: they are gone through turn by turn, and not for ever."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Sized
from typing import Any

MOST_UNROLLED = 4096
"""As many turns of a loop are made in Python; a graph of so many copies of its body is of no use to anybody."""


class NotFollowedError(RuntimeError):
    """A branch or a loop cannot be put into a graph."""


def counted(items: Any) -> Any:
    """``itertools.count`` as a range with the largest end that Python has; anything else as it is."""
    if not isinstance(items, itertools.count):
        return items
    start, second = next(items), next(items)
    if not isinstance(start, int) or not isinstance(second, int) or start == second:
        return itertools.chain((start, second), items)
    return range(start, sys.maxsize if second > start else -sys.maxsize, second - start)


def limited(items: Iterable[Any]) -> Iterator[Any]:
    """The items, one when it is asked for; not all need come to be where only the code of the loop ends it.

    Raises:
        NotFollowedError: An iterable without a length has more than ``MOST_UNROLLED``.
    """
    if isinstance(items, Sized) and len(items) < sys.maxsize // 2:
        yield from items
        return
    for count, item in enumerate(items):
        if count == MOST_UNROLLED:
            raise NotFollowedError(f"a loop over '{type(items).__name__}' goes on and on")
        yield item
