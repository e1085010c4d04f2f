"""What a plan computes on the host while the rest runs on a device: shapes, axes, trip counts, strings.

A device's kernel never looks at elements on the host. What must be known there is computed there, from shapes and from
other values of the host, as far as that goes; where it depends on a device's data, the plan has one step that copies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from entrepot.ir.table import OpKey
from entrepot.ir.traits import host_operands, unread_operands
from entrepot.ir.typing.plain import Type, nbytes
from entrepot.runtime.copies import COPIES
from entrepot.runtime.device import HOST, HOST_ONLY, Array, Device, moved
from entrepot.runtime.plan import Block, Call, Step, Value

_SMALL_KINDS = frozenset({ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL})


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
    lanes.find_computable(block, (value for value in block.inputs if _is_host_only(value) or _is_size(value)))
    lanes.find_wanted(block, [at for at, value in enumerate(block.outputs) if lanes.is_size_found(value, block)])
    lanes.near.update(value for value in block.inputs if _is_host_only(value) or _is_wanted_size(value, lanes))
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
    """

    device: Device
    known: Known
    there: Known
    computable: set[Value] = field(default_factory=set)
    wanted: set[Value] = field(default_factory=set)
    near: set[Value] = field(default_factory=set)
    far: set[Value] = field(default_factory=set)
    copies: dict[Value, Value] = field(default_factory=dict)

    def find_computable(self, block: Block, given: Iterable[Value]) -> None:
        """Forwards: what the host can compute without waiting for the device."""
        self.computable.update(given)
        for step in block.steps:
            for inner in step.blocks.values():
                self.find_computable(inner, _host_inputs(step, inner))
            if not step.traits.repeats or not self.known(step.key):
                continue
            if all(value.constant is not None or value in self.computable for value in _read(step)):
                self.computable.update(value for value in step.outputs if value is not None)

    def is_size_found(self, value: Value | None, block: Block) -> bool:
        """Whether a result of a part is a few sizes that the host can compute: later parts want them there."""
        few = value is not None and _is_size(value) and _nbytes(value) <= 8 * _FEW
        return few and value in self.computable and value not in block.inputs

    def find_wanted(self, block: Block, outputs: Sequence[int]) -> None:
        """Backwards: what must be known on the host, and so which steps run there."""
        self.wanted.update(_present(block.outputs[position] for position in outputs))
        for step in reversed(block.steps):
            for name, inner in step.blocks.items():
                self.find_wanted(inner, _host_outputs(step, name))
            made = [value for value in step.outputs if value is not None]
            if step.blocks:
                self.near.update(filter(_is_host_only, made))
            elif (
                _touches_host_only(step)
                or (step.call is None and not self.there(step.key))
                or any(value in self.wanted and value in self.computable for value in made)
            ):
                step.on_host = True
                self.near.update(made)
                self.wanted.update(_read(step))
            self.wanted.update(_present(step.inputs[n] for n in host_operands(step.key) if n < len(step.inputs)))

    def find_far(self, block: Block, outputs: Sequence[int]) -> None:
        """What is made on the host and read on the device."""
        for step in block.steps:
            for name, inner in step.blocks.items():
                self.near.update(_host_inputs(step, inner))
                self.find_far(inner, _host_outputs(step, name))
                kept = _host_outputs(step, name)
                self._read_far(value for at, value in enumerate(inner.outputs) if at not in kept)
            if not step.on_host:
                self._read_far(value for at, value in enumerate(step.inputs) if not _on_host(step, at))

    def _read_far(self, values: Iterable[Value | None]) -> None:
        self.far.update(value for value in _present(values) if value in self.near and not _is_host_only(value))

    def rewrite(self, block: Block) -> None:
        """Every step reads each value on its own lane."""
        steps = list(self._copied(block.inputs))
        for step in block.steps:
            for name, inner in step.blocks.items():
                self.rewrite(inner)
                kept = _host_outputs(step, name)
                inner.outputs = [self._on(value, at in kept) for at, value in enumerate(inner.outputs)]
            steps.extend(self._stood_in_for(step))
            step.inputs = [self._on(value, step.on_host or _on_host(step, at)) for at, value in enumerate(step.inputs)]
            steps.append(step)
            steps.extend(self._copied(_present(step.outputs)))
        block.steps = steps

    def _on(self, value: Value | None, host: bool) -> Value | None:
        if value is None or value.constant is not None or (value in self.near) == host or _is_host_only(value):
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
        if value is None or value.constant is None or _is_host_only(value):
            return value
        if value not in placed:
            placed[value] = Value(value.name, value.type, place(value.constant))
        return placed[value]

    for step in block.steps:
        for name, inner in step.blocks.items():
            place_constants(inner, place)
            kept = _host_outputs(step, name)
            inner.outputs = [value if at in kept else there(value) for at, value in enumerate(inner.outputs)]
        if not step.on_host:
            step.inputs = [value if _on_host(step, at) else there(value) for at, value in enumerate(step.inputs)]


def _readers(block: Block) -> Iterator[tuple[Value, str]]:
    """Values with the operators that read them, in subgraphs too."""
    yield from ((value, "") for value in _present(block.outputs))
    for step in block.steps:
        yield from ((value, step.op_type if step.domain == COPIES else "") for value in _present(step.inputs))
        for inner in step.blocks.values():
            yield from _readers(inner)


def _on_host(step: Step, position: int) -> bool:
    return position in host_operands(step.key)


def _read(step: Step) -> list[Value]:
    unread = unread_operands(step.key)
    return [value for at, value in enumerate(step.inputs) if value is not None and at not in unread]


def _host_inputs(step: Step, inner: Block) -> list[Value]:
    """The inputs of a subgraph that come from the host: the number of the iteration, its condition, strings."""
    return [value for at, value in enumerate(inner.inputs) if (step.is_a("Loop") and at < 2) or _is_host_only(value)]


def _host_outputs(step: Step, name: str) -> tuple[int, ...]:
    """The outputs of a subgraph that must be known on the host: the condition of a loop, strings."""
    inner = step.blocks[name]
    kept = tuple(at for at, value in enumerate(inner.outputs) if value is not None and _is_host_only(value))
    return (0, *kept) if step.is_a("Loop") else kept


def _touches_host_only(step: Step) -> bool:
    return any(map(_is_host_only, _present([*step.inputs, *step.outputs])))


def _is_host_only(value: Value) -> bool:
    """Whether a value is of a type that no device has, or a sequence of such."""
    known: Type | None = value.type
    while known is not None and known.element is not None:
        known = known.element
    return known is not None and known.dtype in HOST_ONLY


def _is_size(value: Value) -> bool:
    """Whether an input of the graph looks like a size, or a few: it comes from the host as a rule."""
    known = value.type
    return known is not None and known.dtype in _SMALL_KINDS and known.shape is not None and len(known.shape) <= 1


def _nbytes(value: Value) -> float:
    return math.inf if value.type is None else nbytes(value.type.dtype, value.type.shape)


def _is_wanted_size(value: Value, lanes: _Lanes) -> bool:
    return value in lanes.wanted and _is_size(value)


def _present(values: Iterable[Value | None]) -> Iterator[Value]:
    return (value for value in values if value is not None)
