"""What each operation of StableHLO is in ``jax.lax``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, TypeAlias

Meaning: TypeAlias = Callable[..., Any]

_MEANINGS: dict[str, Meaning] = {}
_NUMBERS: dict[str, Meaning] = {}


def means(*names: str) -> Callable[[Meaning], Meaning]:
    """Register what operations with these names compute, of the operation and its operands."""
    return _into(_MEANINGS, names)


def on_numbers(*names: str) -> Callable[[Meaning], Meaning]:
    """Register the same for operands that are numbers known while it is traced, or sizes."""
    return _into(_NUMBERS, names)


def _into(table: dict[str, Meaning], names: tuple[str, ...]) -> Callable[[Meaning], Meaning]:
    def register(function: Meaning) -> Meaning:
        for name in names:
            assert name not in table, name
            table[name] = function
        return function

    return register


def meanings() -> dict[str, Meaning]:
    """Those of all operations, by name."""
    _fill()
    return _MEANINGS


def meanings_on_numbers() -> dict[str, Meaning]:
    """Those of operations on sizes, by name."""
    _fill()
    return _NUMBERS


def _fill() -> None:
    from entrepot.exporters.jax.exported import operations

    for module in pkgutil.iter_modules(operations.__path__, f"{operations.__name__}."):
        importlib.import_module(module.name)
