"""Functions of Python's libraries, written in Python: they are rewritten as those of users are, with their loops."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

_MISSING = object()


def reduce(function: Callable[..., Any], items: Iterable[Any], first: Any = _MISSING) -> Any:
    """``functools.reduce``."""
    begun = first is not _MISSING
    found = first
    for item in items:
        found = function(found, item) if begun else item
        begun = True
    if not begun:
        raise TypeError("reduce() of empty iterable with no initial value")
    return found


def accumulate(items: Iterable[Any], func: Callable[..., Any] = operator.add, *, initial: Any = None) -> list[Any]:
    """``itertools.accumulate``, as a list."""
    begun = initial is not None
    found = initial
    made = [initial] if begun else []
    for item in items:
        found = func(found, item) if begun else item
        begun = True
        made.append(found)
    return made


def mapped(function: Callable[..., Any], items: Iterable[Any], *more: Iterable[Any]) -> list[Any]:
    """``map``, as a list."""
    return [function(*each) for each in zip(items, *more)]  # noqa: B905 - ``map`` ends with the shortest as well
