"""Rules that users register for primitives of JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from entrepot.ir.errors import InputError

PREFIX = "jax::"


@dataclass(frozen=True, eq=False)
class Entry:
    """One registration.

    Attributes:
        name: The primitive.
        function: Its rule.
    """

    name: str
    function: Callable[..., Any]


_ENTRIES: list[Entry] = []


def is_of_jax(operator: Any) -> bool:
    """Whether it names, or is, a primitive of JAX; nothing is imported to tell."""
    homes = [cls.__module__ for cls in type(operator).__mro__]
    return (isinstance(operator, str) and operator.startswith(PREFIX)) or any(home.startswith("jax") for home in homes)


def add(operator: Any, function: Callable[..., Any], into: str) -> Entry:
    """See ``entrepot.register_translation``."""
    if into != "onnx":
        raise InputError(f"into is {into!r}", hint="a primitive of JAX becomes ONNX nodes: into='onnx'")
    if not callable(function):
        raise InputError(f"expected a function, got {type(function).__name__}", hint="give what writes the nodes")
    name = operator.removeprefix(PREFIX) if isinstance(operator, str) else operator.name
    entry = Entry(name, function)
    _ENTRIES.append(entry)
    return entry


def remove(entry: Entry) -> None:
    """Forget one registration."""
    if entry in _ENTRIES:
        _ENTRIES.remove(entry)


def registered(name: str) -> Callable[..., Any] | None:
    """What users want for a primitive: the latest registration, as a rule."""
    function = next((entry.function for entry in reversed(_ENTRIES) if entry.name == name), None)
    return None if function is None else lambda step, *operands: _called(function, step, operands)


def _called(function: Callable[..., Any], step: Any, operands: Any) -> Any:
    result = function(step.build, *operands, **step.params)
    return list(result) if isinstance(result, tuple | list) else result
