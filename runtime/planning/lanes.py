"""What a plan computes on the host while the rest runs on a device: shapes, axes, trip counts, strings.

A device's kernel never looks at elements on the host. What must be known there is computed there, from shapes and from
other values of the host, as far as that goes; where it depends on a device's data, the plan has one step that copies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from entrepot.ir.table import OpKey
from entrepot.ir.traits import host_operands, unread_operands
from entrepot.ir.typing.plain import nbytes
from entrepot.runtime.device import HOST, Array, Device, moved
from entrepot.runtime.dividing.copies import COPIES
from entrepot.runtime.planning.host_side import (
    Port,
    elements_read,
    host_inputs,
    host_outputs,
    is_host_only,
    is_host_operand,
    is_size,
    present,
    size_ports,
    touches_host_only,
)
from entrepot.runtime.planning.plan import Block, Call, Step, Value

Known = Callable[[OpKey], bool]
"""Whether the host has a kernel for an operator."""


_FEW = 32
"""Elements of a result that may be sizes: what is returned with more is left on the device."""


@dataclass(frozen=True)
class Sides:
    """What a part takes from the host and returns there, by positions; see ``Compiled``."""

    on_host: frozenset[int] = frozenset()
    made_on_host: frozenset[int] = frozenset()
    unread: frozenset[int] = frozenset()


def split_lanes(block: Block, device: Device, known: Known, there: Known) -> Sides:
    """Mark the steps that run on the host, and put in the steps that copy values from lane to lane.

    Before: ``Reshape(x, Concat(Shape(x)[0], [-1]))``, all of it on the device. After: the same steps, of which all but
    Reshape are ``on_host``.

    Args:
        block: A whole part; it is changed in place.
        device: Where the other steps run.
        known: What the host can run.
        there: What the device can; other steps run on the host.

    Returns:
        Which of the block's inputs and outputs are on the host.
    """
    lanes = _Lanes(device, known, there)
    lanes.find_computable(block, (value for value in block.inputs if is_host_only(value) or is_size(value)))
    lanes.find_wanted(block, [at for at, value in enumerate(block.outputs) if lanes.is_size_found(value, block)])
    lanes.near.update(
        value for value in block.inputs if is_host_only(value) or (value in lanes.wanted and is_size(value))
    )
    lanes.find_far(block, ())
    lanes.rewrite(block)
    read = {value for value, by in _readers(block) if by != "Like"}
    return Sides(
        frozenset(at for at, value in enumerate(block.inputs) if value in lanes.near),
        frozenset(at for at, value in enumerate(block.outputs) if value in lanes.near),
        frozenset(at for at, value in enumerate(block.inputs) if value not in read),
    )


@dataclass
class _Lanes:
    """What is found about the values of one part, those of its subgraphs included.

    Attributes:
        device: Where steps run that are not on the host.
        known: What the host can run.
        there: What the device can run.
        computable: Values that follow from shapes, constants and other values of the host.
        wanted: Values that must be known on the host.
        near: Values that are made there.
        far: Of those, the ones that a step on the device reads too.
        copies: For values that are needed on the other lane than they are made: their copies there.
        ports: Results of control flow that the host can compute, if it has to.
    """

    device: Device
    known: Known
    there: Known
    computable: set[Value] = field(default_factory=set)
    wanted: set[Value] = field(default_factory=set)
    near: set[Value] = field(default_factory=set)
    far: set[Value] = field(default_factory=set)
    copies: dict[Value, Value] = field(default_factory=dict)
    ports: dict[Step, Sequence[Port]] = field(default_factory=dict)

    def find_computable(self, block: Block, given: Iterable[Value]) -> None:
        """Forwards: what the host can compute without waiting for the device."""
        self.computable.update(given)
        for step in block.steps:
            if step.blocks:
                self._find_carried(step)
            if not step.traits.repeats or not self.known(step.key):
                continue
            if all(map(self._is_computable, elements_read(step))):
                self.computable.update(present(step.outputs))

    def _is_computable(self, value: Value | None) -> bool:
        return value is not None and (value.constant is not None or value in self.computable)

    def _find_carried(self, step: Step) -> None:
        """Sizes that a loop carries or branches return: all of them, less those that turn out to need the device."""
        known = self.ports[step] if step in self.ports else size_ports(step)
        ports = [port for port in known if port.enters is None or self._is_computable(step.inputs[port.enters])]
        before = frozenset(self.computable)
        while True:
            for inner in step.blocks.values():
                entering = [inner.inputs[port.enters] for port in ports if port.enters is not None]
                self.find_computable(inner, [*host_inputs(step, inner), *entering])
            held = [port for port in ports if all(self._is_computable(value) for value in port.leaving(step))]
            if len(held) == len(ports):
                break
            ports, self.computable = held, set(before)
        self.computable.update(present(step.outputs[port.result] for port in ports))
        self.ports[step] = ports

    def is_size_found(self, value: Value | None, block: Block) -> bool:
        """Whether a result of a part is a few sizes that the host can compute: later parts want them there."""
        few = value is not None and is_size(value) and _nbytes(value) <= 8 * _FEW
        return few and value in self.computable and value not in block.inputs

    def find_wanted(self, block: Block, outputs: Sequence[int]) -> None:
        """Backwards: what must be known on the host, and so which steps run there."""
        self.wanted.update(present(block.outputs[position] for position in outputs))
        for step in reversed(block.steps):
            made = list(present(step.outputs))
            if step.blocks:
                self._find_wanted_inside(step)
                self.near.update(filter(is_host_only, made))
            elif (
                touches_host_only(step)
                or (step.call is None and not self.there(step.key))
                or any(value in self.wanted and value in self.computable for value in made)
            ):
                step.on_host = True
                self.near.update(made)
                self.wanted.update(elements_read(step))
            self.wanted.update(present(step.inputs[n] for n in host_operands(step.key) if n < len(step.inputs)))

    def _find_wanted_inside(self, step: Step) -> None:
        """What bodies must know on the host; what a loop carries there follows, and may be needed for more of it."""
        found = -1
        while found != len(step.host_results):
            found = len(step.host_results)
            for name, inner in step.blocks.items():
                self.find_wanted(inner, host_outputs(step, name))
            wanted = {port.result for port in self.ports[step] if self._is_port_wanted(step, port)}
            step.host_results = step.host_results | wanted
        self.near.update(present(step.outputs[at] for at in step.host_results))
        self.wanted.update(present(value for at, value in enumerate(step.inputs) if is_host_operand(step, at)))

    def _is_port_wanted(self, step: Step, port: Port) -> bool:
        entering = [] if port.enters is None else [inner.inputs[port.enters] for inner in step.blocks.values()]
        return not self.wanted.isdisjoint([*entering, *present([step.outputs[port.result]])])

    def find_far(self, block: Block, outputs: Sequence[int]) -> None:
        """What is made on the host and read on the device."""
        for step in block.steps:
            for name, inner in step.blocks.items():
                self.near.update(host_inputs(step, inner))
                self.find_far(inner, host_outputs(step, name))
                kept = host_outputs(step, name)
                self._read_far(value for at, value in enumerate(inner.outputs) if at not in kept)
            if not step.on_host:
                self._read_far(value for at, value in enumerate(step.inputs) if not is_host_operand(step, at))

    def _read_far(self, values: Iterable[Value | None]) -> None:
        self.far.update(value for value in present(values) if value in self.near and not is_host_only(value))

    def rewrite(self, block: Block) -> None:
        """Every step reads each value on its own lane."""
        steps = list(self._copied(block.inputs))
        for step in block.steps:
            for name, inner in step.blocks.items():
                self.rewrite(inner)
                kept = host_outputs(step, name)
                inner.outputs = [self._on(value, at in kept) for at, value in enumerate(inner.outputs)]
            steps.extend(self._stood_in_for(step))
            step.inputs = [
                self._on(value, step.on_host or is_host_operand(step, at)) for at, value in enumerate(step.inputs)
            ]
            steps.append(step)
            steps.extend(self._copied(present(step.outputs)))
        block.steps = steps

    def _on(self, value: Value | None, host: bool) -> Value | None:
        if value is None or value.constant is not None or (value in self.near) == host or is_host_only(value):
            return value
        return self.copies[value]

    def _stood_in_for(self, step: Step) -> Iterator[Step]:
        """A step of the host that asks for the shape of a device's array gets a NumPy array of that shape."""
        for at in unread_operands(step.key) if step.on_host else ():
            value = step.inputs[at] if at < len(step.inputs) else None
            if value is not None and value.constant is None and value not in self.near:
                like = step.inputs[at] = Value(value.name, value.type)
                self.near.add(like)
                yield _copy_step("Like", value, like, self._like)

    def _like(self, array: Array) -> Array:
        """Of the same shape and type, its elements without meaning; of a sequence, one of the same length."""
        if array is None or isinstance(array, list) or not self.device.holds(array):
            return array
        return np.broadcast_to(np.zeros((), self.device.dtype(array)), self.device.shape(array))

    def _to_host(self, array: Array) -> Array:
        return moved(array, self.device, HOST)

    def _to_device(self, array: Array) -> Array:
        return moved(array, HOST, self.device)

    def _copied(self, values: Iterable[Value]) -> Iterator[Step]:
        for value in values:
            if value in self.near and value in self.far:
                yield self._copy(value, "ToDevice", self._to_device)
            elif value in self.wanted and value not in self.near:
                yield self._copy(value, "ToHost", self._to_host)

    def _copy(self, value: Value, op_type: str, function: Callable[[Array], Array]) -> Step:
        made = self.copies[value] = Value(value.name, value.type)
        return _copy_step(op_type, value, made, function)


def _copy_step(op_type: str, value: Value, made: Value, function: Callable[[Array], Array]) -> Step:
    where = f"{op_type} of '{value.name}'"
    return Step(OpKey(COPIES, op_type, 1), [value], [made], where=where, call=Call(function, "copy"))


def place_constants(block: Block, place: Callable[[Array], Array]) -> None:
    """Bound steps of the device read constants from there; on the host they stay NumPy arrays."""
    placed: dict[Value, Value] = {}

    def there(value: Value | None) -> Value | None:
        if value is None or value.constant is None or is_host_only(value):
            return value
        if value not in placed:
            placed[value] = Value(value.name, value.type, place(value.constant))
        return placed[value]

    for step in block.steps:
        for name, inner in step.blocks.items():
            place_constants(inner, place)
            kept = host_outputs(step, name)
            inner.outputs = [value if at in kept else there(value) for at, value in enumerate(inner.outputs)]
        if not step.on_host:
            step.inputs = [value if is_host_operand(step, at) else there(value) for at, value in enumerate(step.inputs)]


def _readers(block: Block) -> Iterator[tuple[Value, str]]:
    """Values with the operators that read them, in subgraphs too."""
    yield from ((value, "") for value in present(block.outputs))
    for step in block.steps:
        yield from ((value, step.op_type if step.domain == COPIES else "") for value in present(step.inputs))
        for inner in step.blocks.values():
            yield from _readers(inner)


def _nbytes(value: Value) -> float:
    return math.inf if value.type is None else nbytes(value.type.dtype, value.type.shape)
