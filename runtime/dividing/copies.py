"""What crosses from one memory to another while a model runs, told beforehand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from entrepot.ir.typing.plain import Type
from entrepot.ir.typing.plain import nbytes as bytes_of
from entrepot.runtime.planning.plan import Block, Step

COPIES = "entrepot.copies"
"""Domain of the steps that move a value: ``ToHost``, ``ToDevice`` and ``Like``, which takes no element along."""


@dataclass(frozen=True)
class Copy:
    """A value that is moved from one device to another.

    Attributes:
        value: Its name.
        source: The device that it is on.
        target: The device that it is needed on, too.
        type: What is known of it.
        when: When this happens if it is not once in each run: ``each turn of node 'loop'``.
    """

    value: str
    source: str
    target: str
    type: Type | None = None
    when: str = ""

    @property
    def nbytes(self) -> int | None:
        """Bytes that cross; ``None`` where they depend on what is fed, or are not known."""
        known = math.inf if self.type is None else bytes_of(self.type.dtype, self.type.shape)
        return None if known == math.inf else math.ceil(known)

    @property
    def size(self) -> str:
        """The same as text: ``96``, ``24 * N``, or ``?`` where nothing is known."""
        if self.nbytes is not None:
            return str(self.nbytes)
        if self.type is None or self.type.shape is None or None in self.type.shape:
            return "?"
        sizes = [dim for dim in self.type.shape if isinstance(dim, int)]
        fixed = Copy("", "", "", Type(dtype=self.type.dtype, shape=tuple(sizes))).nbytes
        symbols = [f"({dim})" if " " in dim else dim for dim in self.type.shape if isinstance(dim, str)]
        return "?" if fixed is None else " * ".join([str(fixed), *symbols])


def copies_in(block: Block, device: str, host: str = "cpu", when: str = "") -> Iterator[Copy]:
    """The copies that the steps of a part make, those in its subgraphs included."""
    for step in block.steps:
        value = step.inputs[0] if step.inputs else None
        if step.domain == COPIES and value is not None and step.op_type != "Like":
            source, target = (device, host) if step.op_type == "ToHost" else (host, device)
            yield Copy(value.name, source, target, value.type, when)
        for inner in step.blocks.values():
            yield from copies_in(inner, device, host, _how_often(step, inner))


def _how_often(step: Step, inner: Block) -> str:
    return f"where {step.where} takes '{inner.name}'" if step.is_a("If") else f"each turn of {step.where}"
