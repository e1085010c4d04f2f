"""Which classes of Keras are known, and how each is written in ONNX.

A rule is called as the ``call`` of its class is, with ``onnx_ir`` values for tensors and a ``Step`` before them. It
returns what ``call`` returns. What has no rule is followed: its ``call`` is made on symbolic tensors.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, TypeAlias

from entrepot.exporters.keras.upstream import LAYERS as HOME_OF_LAYERS
from entrepot.exporters.keras.upstream import OPERATIONS as HOME_OF_OPERATIONS

Rule: TypeAlias = "Callable[..., Any]"

_LAYERS: dict[str, Rule] = {}
_OPERATIONS: dict[str, Rule] = {}


def layer(*names: str) -> Callable[[Rule], Rule]:
    """The rule of the layers of these classes."""
    return functools.partial(_register, _LAYERS, names)


def operation(*names: str) -> Callable[[Rule], Rule]:
    """The rule of the operations of these classes, those that functions of ``keras.ops`` are."""
    return functools.partial(_register, _OPERATIONS, names)


def _register(table: dict[str, Rule], names: tuple[str, ...], rule: Rule) -> Rule:
    for name in names:
        assert name not in table, f"two rules for {name}"
        table[name] = rule
    return rule


def layer_rule(kind: type) -> Rule | None:
    """The rule of a class of layers; classes that others derived from Keras' have none."""
    return _filled()[0].get(kind.__name__) if kind.__module__.startswith(HOME_OF_LAYERS) else None


def operation_rule(kind: type) -> Rule | None:
    """The rule of a class of operations."""
    return _filled()[1].get(kind.__name__) if kind.__module__.startswith(HOME_OF_OPERATIONS) else None


@functools.cache
def _filled() -> tuple[dict[str, Rule], dict[str, Rule]]:
    for package in ("layers", "operations"):
        home = importlib.import_module(f"entrepot.exporters.keras.{package}")
        for module in pkgutil.iter_modules(home.__path__):
            importlib.import_module(f"{home.__name__}.{module.name}")
    return _LAYERS, _OPERATIONS
