"""Layers of torch.nn that steps with constant weights are: what each is called with, and what it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from entrepot.importers.torch.op import Op

Array = np.ndarray[Any, Any]

LAYERS = "entrepot.layers"
"""Domain of steps that several became for the sake of one layer."""


@dataclass(frozen=True)
class Argument:
    """An argument of a constructor.

    Attributes:
        name: What the constructor calls it.
        text: The value.
        keyword: Whether it is passed by name.
    """

    name: str
    text: str
    keyword: bool = True

    def __str__(self) -> str:
        return f"{self.name}={self.text}" if self.keyword else self.text


def applied(op: Op, layer: str) -> str:
    """A layer applied to the first operand."""
    return f"{layer}({op[0]})"


def looked_up(op: Op, layer: str) -> str:
    """A layer applied to the second operand."""
    return f"{layer}({op[1]})"


@dataclass(eq=False)
class Layer:
    """One layer, found in one step.

    Attributes:
        kind: The class in ``torch.nn``.
        arguments: What it is made with.
        tensors: What it holds, by the names that torch has for it.
        buffers: Which of them are not trained.
        call: The expression that applies it to its step's operands; empty if it has assigned the results itself.
        source: The name of the constant that its main weight came from; empty for a layer without weights.
    """

    kind: str
    arguments: tuple[Argument, ...]
    tensors: Mapping[str, Array] = field(default_factory=dict)
    buffers: frozenset[str] = frozenset()
    call: Callable[[Op, str], str] = applied
    source: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether a call of it takes one tensor as it is."""
        return self.call in (applied, looked_up)


def positional(**given: object) -> tuple[Argument, ...]:
    """Arguments that a reader knows by their places."""
    return tuple(Argument(name, str(value), keyword=False) for name, value in given.items())


def keywords(**given: object) -> tuple[Argument, ...]:
    """Arguments passed by name."""
    return tuple(Argument(name, str(value)) for name, value in given.items())


Rule = Callable[[Op], Layer | None]
"""The layer that a step is; ``None`` for a use of its operator that is none."""
