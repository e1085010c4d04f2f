"""Truths that Python asks for: in rewritten functions, those of tensors stay tensors."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.sequences import Unfinished


def _bool(plain: Any, value: Any = False) -> Any:
    from entrepot.exporters.torch.rewriting.steps import settled

    return settled(value)


def item(plain: Any, tensor: torch.Tensor) -> Any:
    """A number; a truth stays a tensor, which can be compared and computed with."""
    return tensor.reshape(()) if tensor.dtype is torch.bool else plain()


def _any(plain: Any, values: Any) -> Any:
    from entrepot.exporters.torch.rewriting.steps import either

    return _asked(either, plain, values)


def _all(plain: Any, values: Any) -> Any:
    from entrepot.exporters.torch.rewriting.steps import both

    return _asked(both, plain, values)


def _asked(join: Callable[..., Any], plain: Any, values: Any) -> Any:
    """One question after the other, as ``or`` and ``and`` ask them."""
    if isinstance(values, Unfinished) or not isinstance(values, list | tuple):
        return plain(values)
    return join(*(functools.partial(operator.getitem, values, at) for at in range(len(values))))


def _allclose(
    plain: Any, first: Any, second: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    return torch.isclose(first, second, rtol, atol, equal_nan).all()


def _equal(plain: Any, first: torch.Tensor, second: torch.Tensor) -> Any:
    if first.dim() != second.dim() or not all(
        one == other for one, other in zip(first.shape, second.shape, strict=True)
    ):
        return False
    return (first == second).all()


def _nonzero(plain: Any, value: torch.Tensor) -> Any:
    return (value != 0).reshape(())


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    bool: _bool,
    any: _any,
    all: _all,
    torch.allclose: _allclose,
    torch.equal: _equal,
    torch.is_nonzero: _nonzero,
}
METHODS: dict[str, Callable[..., Any]] = {
    "item": item,
    "allclose": _allclose,
    "equal": _equal,
    "is_nonzero": _nonzero,
}
