"""What a module holds besides its parts, such as lists, helpers and functions: it leads to the parts as well.

``self.runner = Runner(self.part)`` calls the part from an object. In a copy of the module that has to be the copy of
the part, so each object between the two is copied, and nothing else.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from entrepot.exporters.containers import Kind, kind_of

_TABLES = frozenset(vars(torch.nn.Module()))
_CLOSED = frozenset({"torch", "numpy", "builtins"})
"""Libraries whose objects, other than plain containers, lead to no parts of a user's module."""
_DEEPEST = 5
_LONGEST = 10_000
"""How far and how wide is looked: a trainer or a data set may be behind an attribute."""
_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, torch.Tensor, torch.nn.Parameter})


class Linking:
    """Replaces parts by their copies in what other parts hold.

    Args:
        copies: The copy of each part, by the part's identity.
    """

    def __init__(self, copies: Mapping[int, torch.nn.Module]) -> None:
        self._copies = copies
        self._done: dict[int, tuple[Any, Any]] = {}  # with what was replaced, or another might get its identity

    def link(self, part: torch.nn.Module) -> None:
        """Replace them in what the copy of a part holds."""
        own = {key: value for key, value in vars(part).items() if key not in _TABLES}
        if (copy := self._copies.get(id(part))) is not None:
            vars(copy).update({key: self._of(value) for key, value in own.items() if self._leads(value, _DEEPEST)})

    def _leads(self, value: Any, depth: int) -> bool:
        """Whether it holds a part, in a few steps."""
        if isinstance(value, torch.nn.Module):
            return id(value) in self._copies
        return depth > 0 and any(self._leads(held, depth - 1) for held in _held(value))

    def _of(self, value: Any) -> Any:
        """The value itself if there are no parts in it."""
        if isinstance(value, torch.nn.Module):
            return self._copies.get(id(value), value)
        if id(value) not in self._done:
            self._done[id(value)] = value, value  # what it holds may hold it in turn
            if self._leads(value, _DEEPEST):
                self._done[id(value)] = value, self._like(value)
        return self._done[id(value)][1]

    def _like(self, value: Any) -> Any:
        if isinstance(value, types.MethodType):
            return types.MethodType(self._of(value.__func__), self._of(value.__self__))
        if isinstance(value, functools.partial):
            named = {key: self._of(held) for key, held in value.keywords.items()}
            return functools.partial(self._of(value.func), *map(self._of, value.args), **named)
        if isinstance(value, types.FunctionType):
            return self._function(value)
        kind = kind_of(value)
        return value if kind is None else self._container(kind, value)

    def _function(self, function: types.FunctionType) -> types.FunctionType:
        """One with variables of its own for what is replaced."""
        cells = tuple(
            types.CellType(self._of(held)) if self._leads(held, _DEEPEST) else cell for cell, held in _cells(function)
        )
        made = types.FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, cells
        )
        made.__kwdefaults__, made.__dict__ = function.__kwdefaults__, dict(vars(function))
        return made

    def _container(self, kind: Kind, value: Any) -> Any:
        begun = kind.begin(value)
        if begun is not None:
            self._done[id(value)] = value, begun
        return kind.finish(value, begun, [(key, self._of(held)) for key, held in kind.parts(value)])


def _held(value: Any) -> Iterator[Any]:
    """What a value leads to."""
    if type(value) in _PLAIN:
        return
    if isinstance(value, types.MethodType):
        yield value.__self__
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, types.FunctionType):
        yield from (held for _, held in _cells(value))
    elif (kind := kind_of(value)) is not None and _is_open(kind, value):
        yield from (held for _, held in kind.parts(value))


def _cells(function: types.FunctionType) -> Iterator[tuple[types.CellType, Any]]:
    """The variables of functions around it, with their values."""
    for cell in function.__closure__ or ():
        try:
            yield cell, cell.cell_contents
        except ValueError:  # it has no value yet
            yield cell, None


def _is_open(kind: Kind, value: Any) -> bool:
    if kind.name not in ("object", "dataclass"):
        return _length(value) <= _LONGEST
    return hasattr(value, "__dict__") and type(value).__module__.partition(".")[0] not in _CLOSED


def _length(container: Any) -> int:
    """How many items there are; users' tuples may count something else, or refuse to."""
    kind = next((kind for kind in (tuple, list) if isinstance(container, kind)), type(container))
    return kind.__len__(container)
