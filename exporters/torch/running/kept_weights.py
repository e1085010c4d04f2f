"""Weights that a module writes to: masks that are put on them, norms that are limited."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from entrepot.exporters.torch.running.in_place import changes
from entrepot.exporters.torch.running.raw_data import DataWriter
from entrepot.exporters.torch.upstream import pytree

_SET_DATA = torch.Tensor.data.__set__  # type: ignore[attr-defined]
_LIMITING = {F.embedding: 3, F.embedding_bag: 4}
"""Functions that may limit the norms of weights in place, and which argument says so."""


class WeightKeeper(DataWriter):
    """Inside, the value of a parameter is kept when it is about to be written to, under whatever name.

    No mode of dispatch: those stand in the way of ``torch.cond`` and its like, which compile what they are given.

    Attributes:
        kept: By identity, the parameter, how often it had been written to, and its value before.
    """

    def __init__(self, parameters: Iterable[tuple[torch.nn.Parameter, int]]) -> None:
        super().__init__()
        self.kept: dict[int, tuple[torch.Tensor, int, torch.Tensor]] = {}
        self._weights: dict[int, list[tuple[torch.nn.Parameter, int]]] = {}
        for weight, version in parameters:  # several may be views of one memory
            self._weights.setdefault(_memory(weight), []).append((weight, version))

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Keep what may be overwritten, and make the call."""
        if _writes(func, args, kwargs or {}):
            for value in pytree.tree_leaves((args, kwargs)):
                if place := _memory(value):
                    self._keep(place)
        return super().__torch_function__(func, types, args, kwargs)

    def _keep(self, place: int) -> None:
        for weight, version in self._weights.get(place, ()):
            if id(weight) not in self.kept:
                self.kept[id(weight)] = weight, version, weight.detach().clone()


def _writes(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a function may write to what it is given, by its name or by what it is asked."""
    if func in _LIMITING:
        limit = kwargs.get("max_norm", args[_LIMITING[func]] if len(args) > _LIMITING[func] else None)
        return limit is not None
    return func == _SET_DATA or changes(getattr(func, "__name__", ""), kwargs)


def _memory(value: Any) -> int:
    """Where the elements of a plain tensor begin, and those of its views; 0 for anything else."""
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout is not torch.strided:
        return 0
    try:
        return value.untyped_storage().data_ptr()
    except NotImplementedError:  # within torch.func.vmap and its like
        return 0
