"""What torch.export or torch.onnx would take apart or cannot translate, in forms that follow other sizes.

A module here may hold ``REPLACEMENTS`` (torch function to a function of the same signature that is captured in its
place) and ``TRANSLATIONS`` (torch operator to a function that builds ONNX nodes). Tests hold both to eager results.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any


@functools.cache
def replacements() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Functions to capture in the place of others, from all modules of this package."""
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
