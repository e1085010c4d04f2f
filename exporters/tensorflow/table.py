"""Which function translates which operator of TensorFlow; the table fills by importing the modules beside it."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

Function: TypeAlias = Callable[..., Any]
_F = TypeVar("_F", bound=Function)

_RULES: dict[str, Rule] = {}
_PAIRS: dict[str, Rule] = {}
_PACKAGES = (
    "entrepot.exporters.tensorflow.translations", "entrepot.exporters.tensorflow.compositions",
    "entrepot.exporters.tensorflow.flow",
)  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """How an operator is translated.

    Attributes:
        function: Takes the node, the builder and a value for each input; returns the result, or a tuple of several.
        handles: Whether it takes what is no tensor: variables, tables, lists of tensors.
    """

    function: Function
    handles: bool = False


def translates(*operators: str, handles: bool = False, pairs: bool = False) -> Callable[[_F], _F]:
    """Enter a function as the translation of operators.

    Args:
        operators: Their names, as TensorFlow's nodes have them.
        handles: See ``Rule``.
        pairs: Whether it is the translation for complex numbers, which are pairs of reals along a last axis.
    """
    table = _PAIRS if pairs else _RULES

    def enter(function: _F) -> _F:
        for name in operators:
            assert name not in table, f"two translations of {name}"
            table[name] = Rule(function, handles)
        return function

    return enter


@functools.cache
def rules() -> dict[str, Rule]:
    """Every rule there is, by the name of its operator."""
    for name in _PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{name}.{module.name}")
    return _RULES


def pair_rules() -> dict[str, Rule]:
    """The rules for complex numbers."""
    rules()
    return _PAIRS
