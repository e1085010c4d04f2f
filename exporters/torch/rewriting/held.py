"""Tensors and sizes of a call that functions and objects hold: a block that uses these is given their tensors as well.

``step = lambda z: net(z, x)`` is called in a loop that does not mention ``x`` itself, as is ``grid(points)``, an object
that keeps a tensor.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.sequences import Parted
from entrepot.exporters.torch.rewriting.trees import UNDEFINED, spread
from entrepot.exporters.torch.upstream import FakeTensor

_OTHERS = frozenset({"torch", "numpy", "builtins", "entrepot", "functools", "collections", "typing"})


@dataclass(frozen=True)
class _Cell:
    """A variable of a function around another one."""

    cell: types.CellType
    name: str

    def get(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:  # it has no value yet
            return UNDEFINED

    def put(self, value: Any) -> None:
        self.cell.cell_contents = value


@dataclass(frozen=True)
class _Member:
    """An attribute of an object."""

    owner: Any
    name: str

    def get(self) -> Any:
        return vars(self.owner).get(self.name, UNDEFINED)

    def put(self, value: Any) -> None:
        vars(self.owner)[self.name] = value


def with_held(state: Any) -> Any:
    """The variables of a block, and what the functions and objects among them hold of the call."""
    values = state.get()
    seen = {id(cell) for cell in _cells(state.get, type(state))}
    places = [place for value in values for place in _places(value, seen) if _is_of_call(place.get())]
    if not places:
        return state

    def put(more: tuple[Any, ...]) -> None:
        for place, value in zip(places, more, strict=True):
            place.put(value)

    return state.with_more([place.name for place in places], lambda: tuple(place.get() for place in places), put)


def _cells(get: Any, kind: type) -> Iterator[types.CellType]:
    """The variables themselves; of what is among them nothing is asked, since users' objects answer as they like."""
    for cell in getattr(get, "__closure__", None) or ():
        yield cell
        inner = _Cell(cell, "").get()
        if isinstance(inner, kind):  # variables with more
            yield from _cells(inner.get, kind)  # type: ignore[attr-defined]


def _places(value: Any, seen: set[int]) -> Iterator[_Cell | _Member]:
    if id(value) in seen or isinstance(value, torch.nn.Module | torch.Tensor | type | types.ModuleType | Parted):
        return
    if isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else _items(value):
            yield from _places(item, seen)
    elif isinstance(value, types.MethodType):
        yield from _places(value.__self__, seen)
        yield from _places(value.__func__, seen)
    elif isinstance(value, types.FunctionType):
        seen.add(id(value))
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            if id(cell) not in seen:
                seen.add(id(cell))
                yield from _held(_Cell(cell, name), seen)
    elif _is_theirs(value):
        seen.add(id(value))
        for name in list(vars(value)):
            yield from _held(_Member(value, name), seen)


def _items(value: Any) -> list[Any]:
    return [*(list if isinstance(value, list) else tuple).__iter__(value)]  # a list in a loop knows who looks at it


def _held(place: _Cell | _Member, seen: set[int]) -> Iterator[_Cell | _Member]:
    yield place
    yield from _places(place.get(), seen)


def _is_theirs(value: Any) -> bool:
    """Whether it is an object of a class that a user has written, whose structure the loop does not see itself."""
    return hasattr(value, "__dict__") and type(value).__module__.partition(".")[0] not in _OTHERS


def _is_of_call(value: Any) -> bool:
    """Whether it is made of tensors and sizes, some of which belong to the call that is captured."""
    leaves: list[Any] = []
    spread(value, leaves)
    return any(isinstance(leaf, FakeTensor | torch.SymInt | torch.SymFloat | torch.SymBool) for leaf in leaves)
