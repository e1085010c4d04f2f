"""A module whose state goes in and out with its arguments instead of staying behind in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from entrepot.exporters.structure import Flat, flatten, unflatten
from entrepot.exporters.torch.arrays import TORCH

STATE = ""
"""The keyword under which a ``Stepper`` takes state: paths below it are the names of the places themselves."""


@dataclass(frozen=True)
class Place:
    """A buffer or an attribute that forward changes.

    Attributes:
        path: The path of the module that has it.
        key: Its name there.
    """

    path: str
    key: str

    @property
    def name(self) -> str:
        """The name that ``state_dict`` would give it."""
        return f"{self.path}.{self.key}" if self.path else self.key

    def holder(self, module: torch.nn.Module) -> dict[str, Any]:
        """Where its value is kept."""
        part = vars(module.get_submodule(self.path))
        return part["_buffers"] if self.key in part["_buffers"] else part


class Stepper:
    """Calls a module with the state that it is given, and returns what becomes of it; the module keeps its own.

    Args:
        module: What is called.
        places: Its state.
        returned: Whether state is taken as an argument and returned; else each call begins with what is there now.

    Attributes:
        changing: Names of places that have other tensors after a call than before it.
    """

    def __init__(self, module: torch.nn.Module, places: Sequence[Place], *, returned: bool = True) -> None:
        self.module, self.places, self._returned = module, tuple(places), returned
        self.changing: list[str] = []
        self._initial = flatten(self.values(), arrays=TORCH)

    def on(self, module: torch.nn.Module) -> Stepper:
        """The same for a copy of the module."""
        return Stepper(module, self.places, returned=self._returned)

    def values(self) -> dict[str, Any]:
        """The state as it is."""
        return {place.name: place.holder(self.module).get(place.key) for place in self.places}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module returns; with the state after it, if that is returned."""
        given = _copied(flatten(kwargs.pop(STATE), arrays=TORCH) if self._returned else self._initial)
        holders = [(place.holder(self.module), place) for place in self.places]
        before = [{place.key: holder[place.key]} if place.key in holder else {} for holder, place in holders]
        try:
            for holder, place in holders:
                holder[place.key] = given[place.name]
            result = self.module(*args, **kwargs)
            return {STATE: result} | self.values() if self._returned else result
        finally:
            for (holder, place), value in zip(holders, before, strict=True):
                if value:
                    holder.update(value)  # in its old place
                else:
                    holder.pop(place.key, None)


def _copied(state: Flat) -> Any:
    """Not the tensors themselves: torch.export fails (2.13) for an input that is written to and returned."""
    return unflatten(state.tree, [tensor.clone() for tensor in state.tensors])
