"""Iterables that need not end: they are gone through turn by turn, and not forever."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sized
from typing import Any

MOST_UNROLLED = 4096
"""Turns of a loop that are made in Python at most: a graph with more copies of its body is of no use to anybody."""

_MORE_THAN_ANY = 2**31


class NotFollowedError(RuntimeError):
    """A branch or a loop cannot be put into a graph."""


def counted(items: Any) -> Any:
    """``itertools.count`` as a range with more items than any loop has turns; anything else as it is."""
    if not isinstance(items, itertools.count):
        return items
    start, second = next(items), next(items)
    if not isinstance(start, int) or not isinstance(second, int) or start == second:
        return itertools.chain((start, second), items)
    step = second - start
    return range(start, start + step * _MORE_THAN_ANY, step)


def ends(items: Any) -> bool:
    """Whether so few items are left that all of them could be gone through; an iterator does not say."""
    if isinstance(items, range):
        return not items[_MORE_THAN_ANY - 1 :]  # the length of a range may be too large for ``len``
    return isinstance(items, Sized)


def limited(items: Iterable[Any]) -> Iterator[Any]:
    """The items, each made when its turn comes, since it may be the code of the loop that ends it.

    Raises:
        NotFollowedError: There are more than ``MOST_UNROLLED`` of what need not end.
    """
    most = None if ends(items) else MOST_UNROLLED
    for count, item in enumerate(items):
        if count == most:
            raise NotFollowedError(f"a loop over '{type(items).__name__}' goes on and on")
        yield item
