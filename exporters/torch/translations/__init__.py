"""What torch.export or torch.onnx would take apart or cannot translate, in forms that work for other sizes.

A module here may contain three tables; tests compare all of them with eager results.

- ``DECOMPOSITIONS``: torch operator to a function of the same signature over other operators, replacing it in
  the captured graph, whoever called it. It returns ``NotImplemented`` for what it leaves to torch.
- ``REPLACEMENTS``: torch function to a function called in its place during the capture: for what cannot be
  captured as it is, or not with sizes that vary.
- ``TRANSLATIONS``: torch operator to a function that builds ONNX nodes.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any


@functools.cache
def decompositions() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Decompositions by torch operator, from all modules of this package."""
    return _collect("DECOMPOSITIONS")


@functools.cache
def replacements() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Functions to capture in place of others, from all modules of this package."""
    return _collect("REPLACEMENTS")


@functools.cache
def translations() -> dict[Callable[..., Any], Callable[..., Any]]:
    """ONNX translations by torch operator, from all modules of this package."""
    return _collect("TRANSLATIONS")


def _collect(table: str) -> dict[Callable[..., Any], Callable[..., Any]]:
    found: dict[Callable[..., Any], Callable[..., Any]] = {}
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        found |= getattr(importlib.import_module(module.name), table, {})
    return found
