"""Iterables and calls that need not end: they are gone through one by one, and not forever."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sized
from contextvars import ContextVar
from typing import Any

MOST_UNROLLED = 4096
"""Turns of a loop that are made in Python at most: a graph with more copies of its body is of no use to anybody."""

MOST_WITHIN_ITSELF = 6
"""How often a branch is followed inside of itself, as each time may double what is followed."""

MOST_SIZES_WITHIN_ITSELF = 3
"""The same for a branch on a size, which makes other sizes of it: their formulas grow faster than what is followed."""

_MORE_THAN_ANY = 2**31
_FOLLOWED: ContextVar[tuple[str, ...]] = ContextVar("_FOLLOWED", default=())


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


@contextlib.contextmanager
def within(place: str, most: int) -> Iterator[None]:
    """While the arms of a branch are followed.

    Args:
        place: Where it is.
        most: How often it may come up in itself.

    Raises:
        NotFollowedError: It has come up so often: its function calls itself.
    """
    outer = _FOLLOWED.get()
    if outer.count(place) == most:
        raise NotFollowedError(f"the function at {place} calls itself, as often as a size or a value says")
    token = _FOLLOWED.set((*outer, place))
    try:
        yield
    finally:
        _FOLLOWED.reset(token)
