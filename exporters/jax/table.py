"""The rules: what each primitive of JAX is in ONNX.

A rule is called with the step (its equation and the graph that is being written) and a value for each operand, and
returns a value, or a list of several. A complex value is a ``Pair``, which only rules that say so ever see.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import onnx_ir as ir


class Pair(NamedTuple):
    """A complex value as two real ones."""

    re: ir.Value
    im: ir.Value


Operand: TypeAlias = "ir.Value | Pair"
Rule: TypeAlias = Callable[..., Any]

_RULES: dict[str, Rule] = {}
_COMPLEX: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for primitives with these names, on real values."""
    return _into(_RULES, names)


def complex_rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for primitives where an operand or a result is complex."""
    return _into(_COMPLEX, names)


def rules() -> dict[str, Rule]:
    """Every rule on real values, by primitive."""
    _fill()
    return _RULES


def complex_rules() -> dict[str, Rule]:
    """Every rule on complex values, by primitive."""
    _fill()
    return _COMPLEX


def _into(table: dict[str, Rule], names: tuple[str, ...]) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for name in names:
            assert name not in table, name
            table[name] = function
        return function

    return register


def _fill() -> None:
    from entrepot.exporters.jax import primitives

    for module in pkgutil.iter_modules(primitives.__path__, f"{primitives.__name__}."):
        importlib.import_module(module.name)
