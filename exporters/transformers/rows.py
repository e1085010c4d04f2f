"""Tensors that are taken apart row by row and put together again, as a list of all rows whose number varies.

``torch.cat(list(features))`` asks how many rows there are, and a capture would keep the answer for ever. Here such a
list has one member that stands for all rows, which can be concatenated or stacked, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class _Rows:
    """All rows of a tensor, in place of one."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Functions of torch take it for a tensor, and ask here."""
        raise TypeError(f"{getattr(func, '__name__', func)} is applied to single rows of a tensor whose number varies")


class WholeRows(TorchFunctionMode):
    """Inside, a tensor with a varying number of rows is iterated over at once, as long as its rows are only joined."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: torch.Tensor | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Take apart and join by views; everything else is as it was."""
        kwargs = kwargs or {}
        if func is torch.Tensor.unbind and args[1:] in ((), (0,)) and not kwargs and _varies(args[0]):
            self._asked = args[0]
            return (_Rows(args[0]),)
        if func is torch.Tensor.__len__ and args[0] is self._asked:
            raise TypeError("the number of rows varies")  # list() asks for a hint, and does without
        if func in (torch.cat, torch.concat, torch.stack) and any(isinstance(each, _Rows) for each in args[0]):
            return _joined(args[0], _axis(args, kwargs), stacked=func is torch.stack)
        return func(*args, **kwargs)


def _varies(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.dim() > 1 and isinstance(tensor.shape[0], torch.SymInt)


def _axis(args: Sequence[Any], kwargs: dict[str, Any]) -> int:
    return args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis", 0))


def _joined(parts: Sequence[Any], axis: int, *, stacked: bool) -> torch.Tensor:
    if axis != 0 or len(parts) != 1:
        raise TypeError("single rows of a tensor whose number varies are joined with others")
    whole = parts[0].tensor
    return whole if stacked else whole.flatten(0, 1)
