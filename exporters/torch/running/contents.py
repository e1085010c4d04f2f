"""What lists, dicts and sets hold: noted before somebody may change it, compared, and put back."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

_MAPPINGS = (OrderedDict, dict)
_PLAIN = (*_MAPPINGS, list, set)


def contents(value: Any) -> Any:
    """What a list, dict or set holds; ``None`` of anything else."""
    kind = next((kind for kind in (list, dict, set) if isinstance(value, kind)), None)
    return None if kind is None else kind(value)  # classes of their own may refuse to be copied


def same_members(first: Any, second: Any) -> bool:
    """Whether two of them hold the very same objects."""
    if isinstance(first, dict):
        return list(first) == list(second) and same_members(list(first.values()), list(second.values()))
    if isinstance(first, list):
        return len(first) == len(second) and all(a is b for a, b in zip(first, second, strict=True))
    return first is second or bool(first == second)


def is_kept(value: Any, before: Any) -> bool:
    """Whether a list, dict or set holds what it held; most are hooks of a module, and empty, or parts by name."""
    if not before and type(value) in _PLAIN:
        return not value
    if type(value) in _MAPPINGS:
        same = len(value) == len(before) and all(map(operator.is_, value.values(), before.values()))
        return same and list(value) == list(before)
    return same_members(contents(value), before)


def put_back(value: Any, before: Any) -> None:
    """Let a list, dict or set hold what it held, if it does not; frozen ones refuse to be written to."""
    if before is None or is_kept(value, before):
        return
    if isinstance(value, list):
        value[:] = before
    elif isinstance(value, dict | set):
        value.clear()
        value.update(before)


class Contents:
    """What many lists, dicts and sets hold, to be put back; of a module, three in four are hooks, and empty.

    Args:
        held: Each with what it holds, which is ``None`` of anything else; see ``contents``.
    """

    def __init__(self, held: Iterable[tuple[Any, Any]]) -> None:
        kept = [(value, before) for value, before in held if before is not None]
        self._empty = [value for value, before in kept if not before and type(value) in _PLAIN]
        self._others = [(value, before) for value, before in kept if before or type(value) not in _PLAIN]

    def restore(self) -> None:
        """Let all of them hold what they held."""
        if any(self._empty):
            for value in self._empty:
                value.clear()
        for value, before in self._others:
            put_back(value, before)
