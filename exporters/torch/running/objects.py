"""Objects that a module holds, such as a cache that its layers share: what they consist of, to be put back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from entrepot.exporters.containers import KINDS, Parts, kind_of

_MOST = 10_000  # containers; whoever holds more holds data, not state
_OBJECTS = ("object", "dataclass")


class HeldObjects:
    """Every object in some values, and every list, dict and object in it; modules are looked after elsewhere.

    Args:
        values: Attributes of modules.
    """

    def __init__(self, values: Iterable[Any]) -> None:
        self._parts: dict[int, tuple[Any, Parts]] = {}  # with the containers: an id is theirs as long as they live
        for value in values:
            if any(_is_object(each) for each in (value, *_members(value))):
                self._take(value)

    def tensors(self) -> Iterator[torch.Tensor]:
        """The tensors in them."""
        return (value for _, parts in self._parts.values() for _, value in parts if type(value) is torch.Tensor)

    def changed(self, value: Any, written: set[int]) -> bool:
        """Whether a value, or anything in it, is not what it was; ``written`` are tensors that have been written to."""
        found = [self._parts[each] for each in _reach(value) if each in self._parts]
        return any(
            not _same(_parts_of(container), parts) or any(id(part) in written for _, part in parts)
            for container, parts in found
        )

    def restore(self) -> None:
        """Put everything back."""
        for container, parts in self._parts.values():
            if not _same(_parts_of(container), parts):
                _put_back(container, parts)

    def _take(self, value: Any) -> None:
        waiting = [value]
        while waiting and len(self._parts) < _MOST:
            container = waiting.pop()
            if id(container) not in self._parts and _is_container(container):
                parts = _parts_of(container)
                self._parts[id(container)] = container, parts
                waiting += [part for _, part in parts]


def _is_container(value: Any) -> bool:
    return not isinstance(value, torch.nn.Module | torch.Tensor | torch.Generator) and kind_of(value) is not None


def _is_object(value: Any) -> bool:
    kind = None if isinstance(value, torch.nn.Module | torch.Tensor) else kind_of(value)
    return kind is not None and kind.name in _OBJECTS


def _members(value: Any) -> list[Any]:
    return [part for _, part in _parts_of(value)] if isinstance(value, list | tuple | dict) else []


def _parts_of(container: Any) -> Parts:
    kind = kind_of(container)
    return [] if kind is None else kind.parts(container)


def _reach(value: Any) -> Iterator[int]:
    seen, waiting = set[int](), [value]
    while waiting and len(seen) < _MOST:
        container = waiting.pop()
        if id(container) not in seen and _is_container(container):
            seen.add(id(container))
            yield id(container)
            waiting += [part for _, part in _parts_of(container)]


def _same(first: Parts, second: Parts) -> bool:
    return len(first) == len(second) and all(
        one == other and (a is b or (isinstance(a, int | float | str) and type(a) is type(b) and a == b))
        for (one, a), (other, b) in zip(first, second, strict=True)
    )


def _put_back(container: Any, parts: Parts) -> None:
    kind = kind_of(container)
    if kind is None or not kind.changeable:
        return
    if kind.name == "dict":
        container.clear()
    elif kind.name in _OBJECTS:
        for key in dict(_parts_of(container)).keys() - dict(parts).keys():
            object.__delattr__(container, key)
    KINDS[kind.name].finish(container, container, parts)
