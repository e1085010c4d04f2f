"""An item of a list of modules or functions that a value chooses, ``experts[index]``: calling it is a branch for each.

Python would have to know the value. Where it lies beyond the list, which Python refuses, the last item is called. The
value may also be in the name of the item, ``experts[f"expert_{index}"]``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.branches import branch
from entrepot.exporters.torch.rewriting.part import State, inside
from entrepot.exporters.torch.rewriting.shapes import as_tensor
from entrepot.exporters.torch.rewriting.texts import Text, is_unknown


class ChosenPart:
    """Stands for the item; only calls of it are followed.

    Args:
        items: All of them.
        index: The number of the one that is meant.
        numbers: That of each.
    """

    def __init__(self, items: Sequence[Callable[..., Any]], index: torch.Tensor, numbers: Sequence[int]) -> None:
        self._items, self._index, self._numbers = items, index, numbers

    def __call__(self, *args: Any, **how: Any) -> Any:
        """What the item returns."""
        given = [args, how, self._index]  # to each branch in turn, which has tensors of its own
        frame = sys._getframe(1)  # noqa: SLF001 - the user's line

        def get() -> tuple[Any, ...]:
            return tuple(given)

        def put(values: tuple[Any, ...]) -> None:
            given[:] = values

        get.__code__ = get.__code__.replace(co_filename=frame.f_code.co_filename)
        return self._called(0, given, State(get, put, ("", "", ""), frozenset()), frame.f_lineno)

    def _called(self, at: int, given: list[Any], state: State, line: int) -> Any:
        def this() -> Any:
            return self._items[at](*given[0], **given[1])

        def another() -> Any:
            return self._called(at + 1, given, state, line)

        if at == len(self._items) - 1:
            return this()
        return branch(given[2] == self._numbers[at], (this, another), state, line, returns=True)


def chosen_part(items: Any, index: Any) -> ChosenPart | None:
    """What stands for ``items[index]``; ``None`` where Python can tell which it is, or nothing can be called."""
    if isinstance(index, Text):
        return _by_name(items, index) if isinstance(items, Mapping | torch.nn.ModuleDict) else None
    if not isinstance(items, list | tuple | torch.nn.ModuleList) or not len(items) or not all(map(callable, items)):
        return None
    counted = isinstance(index, torch.SymInt) and inside()  # by a loop; other sizes are left to conditions
    if not (is_unknown(index) or counted):
        return None
    number = as_tensor(index).reshape(())
    return ChosenPart(list(items), torch.where(number < 0, number + len(items), number), range(len(items)))


def chosen_attribute(plain: Callable[..., Any], owner: Any, name: Any, *default: Any) -> Any:
    """``getattr(owner, name)``."""
    if isinstance(name, Text) and isinstance(owner, torch.nn.Module) and not default:
        return _by_name(dict(owner.named_children()), name)
    return plain(owner, name, *default)


def _by_name(items: Any, name: Text) -> ChosenPart | None:
    numbers = name.numbers(items.keys())
    parts = [items[key] for key in numbers]
    if not parts or not all(map(callable, parts)):
        return None
    return ChosenPart(parts, as_tensor(name.number).reshape(()), [*numbers.values()])
