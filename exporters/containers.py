"""What values consist of, and how others like them are made: plain containers, and objects with attributes.

Nothing is looked up by class. A mapping has items, a named tuple fields, and any other object what Python itself would
pickle of it: its ``__dict__`` and its ``__slots__``. That covers dataclasses, attrs, and caches of whichever library.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections import deque
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

Parts: TypeAlias = list[tuple[Any, Any]]
"""Key, index or attribute, with the value there."""


@dataclass(frozen=True)
class Kind:
    """One kind of container.

    Attributes:
        name: What descriptions call it.
        matches: Whether a value is of this kind.
        parts: What a value consists of.
        begin: An empty one to be filled, like a given one; ``None`` where its parts have to be made first.
        finish: The result of ``begin`` with its parts, or a new one like the given one.
        changeable: Whether there may be several references to one, through each of which it changes.
    """

    name: str
    matches: Callable[[Any], bool]
    parts: Callable[[Any], Parts]
    begin: Callable[[Any], Any]
    finish: Callable[[Any, Any, Parts], Any]
    changeable: bool = True


def kind_of(value: Any) -> Kind | None:
    """The kind of a value, or ``None`` for one that has no parts."""
    return next((kind for kind in KINDS.values() if kind.matches(value)), None)


def is_plain(prototype: Any) -> bool:
    """Whether it is a container of Python itself, without anything of its own."""
    return type(prototype) in (tuple, list, dict)


def _begin_mapping(prototype: Any) -> Any:
    if type(prototype) is dict:
        return {}
    made_at_once = dataclasses.is_dataclass(prototype) or not isinstance(prototype, MutableMapping)
    return None if made_at_once else copy.copy(prototype)


def _finish_mapping(prototype: Any, begun: Any, parts: Parts) -> Any:
    if begun is None:
        make: Any = type(prototype)
        return make(**dict(parts)) if dataclasses.is_dataclass(prototype) else make(dict(parts))
    begun.update(dict(parts))  # some of other libraries take no pairs
    return begun


def _finish_list(prototype: Any, begun: Any, parts: Parts) -> Any:
    begun.clear()
    begun.extend(value for _, value in parts)
    return begun


def _finish_tuple(prototype: Any, begun: Any, parts: Parts) -> Any:
    return type(prototype)(value for _, value in parts)


def _finish_named_tuple(prototype: Any, begun: Any, parts: Parts) -> Any:
    return type(prototype)(**dict(parts))


def _has_attributes(value: Any) -> bool:
    if isinstance(value, type | ModuleType) or inspect.isroutine(value):
        return False
    return hasattr(value, "__dict__") or object.__getstate__(value) is not None


def _attributes(value: Any) -> Parts:
    state: Any = object.__getstate__(value)
    own, slots = state if isinstance(state, tuple) else (state, None)
    return [*(own or {}).items(), *(slots or {}).items()]


def _begin_object(prototype: Any) -> Any:
    try:
        return object.__new__(type(prototype))  # not its own, which may want arguments
    except TypeError:  # a class that Python's C code is behind
        return copy.copy(prototype)


def _finish_object(prototype: Any, begun: Any, parts: Parts) -> Any:
    """Set attributes without running ``__setattr__``, which frozen classes forbid and others use for checks."""
    own = getattr(prototype, "__dict__", {})
    for key, value in parts:
        if key in own:
            begun.__dict__[key] = value
        else:
            object.__setattr__(begun, key, value)
    return begun


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _enumerated(value: Iterable[Any]) -> Parts:
    return list(enumerate(value))


_KINDS = (
    # Some libraries' results are mappings and dataclasses; their items are what was set.
    Kind(
        "dict",
        lambda value: isinstance(value, Mapping),
        lambda value: list(value.items()),
        _begin_mapping,
        _finish_mapping,
    ),
    Kind(
        "namedtuple",
        _is_named_tuple,
        lambda value: list(zip(value._fields, value, strict=True)),
        lambda _: None,
        _finish_named_tuple,
        changeable=False,
    ),
    Kind("tuple", lambda value: isinstance(value, tuple), _enumerated, lambda _: None, _finish_tuple, changeable=False),
    Kind("list", lambda value: isinstance(value, list | deque), _enumerated, copy.copy, _finish_list),
    Kind("dataclass", _is_dataclass, _attributes, _begin_object, _finish_object),
    Kind("object", _has_attributes, _attributes, _begin_object, _finish_object),
)

KINDS = {kind.name: kind for kind in _KINDS}
"""By name; a value is of the first kind that matches it."""
