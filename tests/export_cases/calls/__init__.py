"""Architectures of transformers as people call them: with caches that a model made, in modules of their own.

The corpus ``architectures`` calls every class in the usual way; here few are called in unusual ones.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from tests.export_cases.case import Built, Case

_CASES: list[Case] = []
_Builder = Callable[[], tuple[Any, ...]]


def case(builder: _Builder) -> _Builder:
    """Register a builder of ``(module, sample, other call, ...)``."""

    def make() -> Built:
        module, *calls = builder()
        return Built(module, tuple(calls))

    family = builder.__module__.rpartition(".")[2]
    _CASES.append(Case(f"{family}/{builder.__name__}", "calls", make))
    return builder


def catalogue() -> list[Case]:
    """The cases; nothing is built yet."""
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    return list(_CASES)
