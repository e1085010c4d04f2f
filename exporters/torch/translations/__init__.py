"""What torch.export or torch.onnx would take apart or cannot translate, in forms that work for other sizes.

A module here may contain three tables; tests compare all of them with eager results.

- ``DECOMPOSITIONS``: torch operator to a function of the same signature over other operators, replacing it in
  the captured graph, whoever called it. It returns ``NotImplemented`` for what it leaves to others, or to torch.
- ``REPLACEMENTS``: torch function to a function called in its place during the capture: for what cannot be
  captured as it is, or not with sizes that vary.
- ``TRANSLATIONS``: torch operator to a function that builds ONNX nodes.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any


@functools.cache
def decompositions() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Decompositions by torch operator, from all modules of this package; of several, the last is asked first."""
    found: dict[Callable[..., Any], Callable[..., Any]] = {}
    for table in _tables("DECOMPOSITIONS"):
        for operator, function in table.items():
            found[operator] = _either(function, found[operator]) if operator in found else function
    return found


@functools.cache
def replacements() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Functions to capture in place of others, from all modules of this package."""
    return _collect("REPLACEMENTS")


@functools.cache
def translations() -> dict[Callable[..., Any], Callable[..., Any]]:
    """ONNX translations by torch operator, from all modules of this package."""
    return _collect("TRANSLATIONS")


def _collect(name: str) -> dict[Callable[..., Any], Callable[..., Any]]:
    found: dict[Callable[..., Any], Callable[..., Any]] = {}
    for table in _tables(name):
        found |= table
    return found


def _tables(name: str) -> Iterator[dict[Callable[..., Any], Callable[..., Any]]]:
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        yield getattr(importlib.import_module(module.name), name, {})


def _either(one: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    """The one, and the other for what that leaves to others."""

    @functools.wraps(one)
    def decomposition(*args: Any, **how: Any) -> Any:
        result = one(*args, **how)
        return other(*args, **how) if result is NotImplemented else result

    return decomposition
