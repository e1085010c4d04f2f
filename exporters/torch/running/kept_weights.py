"""Weights that a module writes to: masks that are put on them, norms that are limited."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class WeightKeeper(TorchDispatchMode):
    """Inside, the value of a parameter is kept when it is about to be written to, under whatever name.

    Attributes:
        kept: By identity, the parameter, how often it had been written to, and its value before.
    """

    def __init__(self, parameters: Iterable[tuple[torch.nn.Parameter, int]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: dict[int, tuple[torch.Tensor, int, torch.Tensor]] = {}
        self._weights = {_memory(weight): (weight, version) for weight, version in parameters if _has_memory(weight)}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Keep what is about to be overwritten, and go on."""
        schema = func._schema  # noqa: SLF001 - as torch's own modes read it
        if schema.is_mutable:
            for argument, value in zip(schema.arguments, args, strict=False):
                if argument.alias_info is not None and argument.alias_info.is_write and _has_memory(value):
                    self._keep(value)
        return func(*args, **(kwargs or {}))

    def _keep(self, written: torch.Tensor) -> None:
        weight, version = self._weights.get(_memory(written), (None, 0))
        if weight is not None and id(weight) not in self.kept:
            self.kept[id(weight)] = weight, version, weight.detach().clone()


def _has_memory(value: Any) -> bool:
    return type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout is torch.strided and value.numel() > 0


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
