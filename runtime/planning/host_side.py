"""What a step takes from the host and leaves there, its subgraphs included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import onnx_ir as ir

from entrepot.ir.traits import host_operands, unread_operands
from entrepot.ir.typing.plain import Type
from entrepot.runtime.device import HOST_ONLY
from entrepot.runtime.planning.plan import Block, Step, Value

_SMALL_KINDS = frozenset({ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL})

_CARRIED = 2
"""What a Loop takes before the values that it carries: the trip count and the condition."""


@dataclass(frozen=True)
class Port:
    """How a result of control flow comes about.

    Attributes:
        result: Its position among the results of the step.
        leaves: Its position among the outputs of each body.
        enters: Of what a Loop carries, the position among the inputs of the body and of the step; else ``None``.
    """

    result: int
    leaves: int
    enters: int | None = None

    def leaving(self, step: Step) -> list[Value | None]:
        """What the bodies return for it."""
        return [inner.outputs[self.leaves] for inner in step.blocks.values()]


def size_ports(step: Step) -> list[Port]:
    """The results that look like sizes: what branches of an If return, what a Loop carries."""
    if step.is_a("If"):
        ports = [Port(at, at) for at in range(len(step.outputs))]
    elif step.is_a("Loop"):
        ports = [Port(at - _CARRIED, at - 1, at) for at in range(_CARRIED, len(step.inputs))]
    else:
        return []
    return [port for port in ports if all(value is not None and is_size(value) for value in port.leaving(step))]


def is_host_operand(step: Step, position: int) -> bool:
    """Whether a step takes an input as a NumPy array."""
    carried = step.is_a("Loop") and position - _CARRIED in step.host_results
    return carried or position in host_operands(step.key)


def elements_read(step: Step) -> list[Value]:
    """The inputs of which a step needs more than the shape."""
    unread = unread_operands(step.key)
    return [value for at, value in enumerate(step.inputs) if value is not None and at not in unread]


def host_inputs(step: Step, inner: Block) -> list[Value]:
    """The inputs of a subgraph that come from the host: the number of the iteration, its condition, strings, sizes."""
    carried = {at + _CARRIED for at in step.host_results} | {0, 1} if step.is_a("Loop") else set()
    return [value for at, value in enumerate(inner.inputs) if at in carried or is_host_only(value)]


def host_outputs(step: Step, name: str) -> tuple[int, ...]:
    """The outputs of a subgraph that must be known on the host: the condition of a loop, strings, sizes."""
    inner = step.blocks[name]
    kept = [at for at, value in enumerate(inner.outputs) if value is not None and is_host_only(value)]
    if step.is_a("Loop"):
        return (0, *(at + 1 for at in step.host_results), *kept)
    return (*step.host_results, *kept)


def touches_host_only(step: Step) -> bool:
    """Whether a step reads or makes what no device has."""
    return any(map(is_host_only, present([*step.inputs, *step.outputs])))


def is_host_only(value: Value) -> bool:
    """Whether a value is of a type that no device has, or a sequence of such."""
    known: Type | None = value.type
    while known is not None and known.element is not None:
        known = known.element
    return known is not None and known.dtype in HOST_ONLY


def is_size(value: Value) -> bool:
    """Whether a value looks like a size, or a few: it belongs on the host as a rule."""
    known = value.type
    return known is not None and known.dtype in _SMALL_KINDS and known.shape is not None and len(known.shape) <= 1


def present(values: Iterable[Value | None]) -> Iterator[Value]:
    """The values that are there."""
    return (value for value in values if value is not None)
