"""An item of a list of modules or functions that a value chooses, ``experts[index]``: calling it is a branch for each.

Python would have to know the value. Where it lies beyond the list, which Python refuses, the last item is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.branches import branch
from entrepot.exporters.torch.rewriting.environment import expression, hint
from entrepot.exporters.torch.rewriting.part import State
from entrepot.exporters.torch.rewriting.shapes import as_tensor
from entrepot.exporters.torch.upstream import FakeTensor


class ChosenPart:
    """Stands for the item; only calls of it are followed."""

    def __init__(self, items: Sequence[Callable[..., Any]], index: torch.Tensor) -> None:
        self._items, self._index = items, torch.where(index < 0, index + len(items), index)

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

        return (
            this() if at == len(self._items) - 1 else branch(given[2] == at, (this, another), state, line, returns=True)
        )


def chosen_part(items: Any, index: Any) -> ChosenPart | None:
    """What stands for ``items[index]``; ``None`` where Python can tell which it is, or nothing can be called."""
    if not isinstance(items, list | tuple | torch.nn.ModuleList) or not len(items) or not all(map(callable, items)):
        return None
    if isinstance(index, torch.SymInt):
        unknown = hint(index) is None and not expression(index).is_Integer
    else:
        unknown = isinstance(index, FakeTensor) and index.numel() == 1 and getattr(index, "constant", None) is None
    return ChosenPart(list(items), as_tensor(index).reshape(())) if unknown else None
