"""The table of steps: what happens to a node between two adjacent versions of its operator.

A step is keyed by domain, operator, and the since-versions it leads from and to; 0 stands for "before the operator
existed". Modules of ``adapters/`` fill the table when it is first used.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import pkgutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from entrepot.ir.opset.schemas import histories

if TYPE_CHECKING:
    import onnx_ir as ir

    from entrepot.ir.opset.builder import OpBuilder

Replacement: TypeAlias = "ir.Value | Sequence[ir.Value | None] | None"
"""New outputs in the node's order, or ``None``: the node stays, perhaps edited in place."""

Rule: TypeAlias = Callable[["OpBuilder", "ir.Node"], Replacement]

R = TypeVar("R", bound=Callable[..., Any])


class Step(NamedTuple):
    """One operator between two adjacent since-versions; the smaller one first when going up."""

    domain: str
    op_type: str
    start: int
    stop: int


def keep(_op: OpBuilder, _node: ir.Node) -> None:
    """The node means the same at both versions."""


_rules: dict[Step, Rule] = {}
_vanished: dict[str, tuple[Rule, int]] = {}
_impossible: dict[Step, str] = {}


def adapter(op_type: str, start: int, stop: int, *, domain: str = "") -> Callable[[R], R]:
    """Register one step in one direction; ``adapter("Softmax", 13, 11)`` is the way down.

    What the function emits through ``op`` is read at opset ``stop`` going up and at ``start - 1`` going down, so it
    may use every operator known there.
    """

    def register(rule: R) -> R:
        _add(Step(domain, op_type, start, stop), rule)
        return rule

    return register


def decomposition(op_type: str, born: int, *, domain: str = "") -> Callable[[R], R]:
    """Register how a node is expressed at opset ``born - 1``, where its operator does not exist."""
    return adapter(op_type, born, 0, domain=domain)


def unchanged(op_type: str, *versions: int, domain: str = "") -> None:
    """Declare that adjacent versions differ in element types, optional parts or wording only, in both directions."""
    for older, newer in itertools.pairwise(versions):
        _add(Step(domain, op_type, older, newer), keep)
        _add(Step(domain, op_type, newer, older), keep)


def extended(op_type: str, older: int, newer: int, *, domain: str = "") -> None:
    """Declare that the newer version accepts every older node as it is; the way down has its own rule."""
    _add(Step(domain, op_type, older, newer), keep)


def added(
    op_type: str, older: int, newer: int, *, otherwise: Rule | None = None, domain: str = "", **defaults: Any
) -> None:
    """Declare attributes that the newer version added and whose defaults mean what the older one did.

    Args:
        op_type: The operator.
        older: Since-version without the attributes.
        newer: Since-version with them.
        otherwise: The way down for other values; without it they are refused.
        domain: The operator's domain.
        **defaults: Each added attribute with its default; a list stands for "all entries equal to the one given".
    """
    extended(op_type, older, newer, domain=domain)

    def drop(op: OpBuilder, node: ir.Node) -> Replacement:
        for name, default in defaults.items():
            if not op.has_default(name, default):
                if otherwise is not None:
                    return otherwise(op, node)
                op.refuse(f"{name}={op.attr(name)!r} is not expressible before version {newer}")
        return op.drop(*defaults)

    names = " and ".join(defaults)
    drop.__doc__ = f"Drop {names} where that changes nothing{', else rewrite' if otherwise else ''}."
    _add(Step(domain, op_type, newer, older), drop)


def impossible(op_type: str, start: int, stop: int, reason: str, *, hint: str | None = None, domain: str = "") -> None:
    """Declare that a step cannot be taken, and why."""

    def refuse(op: OpBuilder, _node: ir.Node) -> Replacement:
        op.refuse(reason, hint=hint)

    step = Step(domain, op_type, start, stop)
    _impossible[step] = reason
    _add(step, refuse)


def vanished(op_type: str, *, read_at: int = 8) -> Callable[[R], R]:
    """Register what replaces an experimental ai.onnx operator that no schema describes any more.

    Args:
        op_type: Its name.
        read_at: The opset at which the nodes are read that the rule writes.
    """

    def register(rule: R) -> R:
        _vanished[op_type] = rule, read_at
        return rule

    return register


def find(step: Step) -> Rule | None:
    """The rule of one step, or ``None`` when none is declared."""
    _fill()
    return _rules.get(step)


def why_impossible(step: Step) -> str | None:
    """The reason why a step is declared impossible, or ``None`` when it is not."""
    _fill()
    return _impossible.get(step)


def find_vanished(op_type: str) -> tuple[Rule, int] | None:
    """What replaces an experimental operator and the opset it writes for, or ``None``."""
    _fill()
    return _vanished.get(op_type)


def declared() -> frozenset[Step]:
    """Every step that has a rule."""
    _fill()
    return frozenset(_rules)


@functools.cache
def route(domain: str, op_type: str, start: int, stop: int) -> tuple[Step, ...]:
    """The steps between two since-versions that do something; adjacent ones that change nothing are left out."""
    versions = (0, *histories()[domain, op_type])
    low, high = sorted((versions.index(start), versions.index(stop)))
    path = versions[low : high + 1] if start < stop else versions[low : high + 1][::-1]
    steps = (Step(domain, op_type, a, b) for a, b in itertools.pairwise(path))
    return tuple(step for step in steps if find(step) is not keep)


def _add(step: Step, rule: Rule) -> None:
    if step in _rules:
        raise ValueError(f"two rules for {step}")
    _rules[step] = rule


@functools.cache
def _fill() -> None:
    package = importlib.import_module("entrepot.ir.opset.adapters")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
