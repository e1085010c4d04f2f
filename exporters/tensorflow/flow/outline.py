"""What the functions of a While say before they are translated: what stays, what counts, what is collected."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from entrepot.exporters.tensorflow.graphs.body import SAME, Ref, Step
from entrepot.exporters.tensorflow.graphs.expanding import Flat

_COMPARED = {"Less": (1, 0), "LessEqual": (1, 1), "Greater": (-1, 0), "GreaterEqual": (-1, 1)}
"""Which way the first operand may grow, and whether it may be equal at last."""


ITEMS = {"TensorListSetItem": 2, "TensorListPushBack": 1}
"""Operators that put an item into a list, with the place of that operand."""


@dataclass(frozen=True)
class Bound:
    """Where a counter ends.

    Attributes:
        counter: Which variable counts.
        limit: In the condition's function, what it is compared with.
        extra: 1 where it may be equal.
    """

    counter: int
    limit: Ref
    extra: int


@dataclass(frozen=True)
class Collected:
    """A list to which each turn adds one item.

    Attributes:
        list: Which variable it is.
        item: In the body, what is added.
        counter: Which variable is the place; ``None`` where it is the end.
    """

    list: int
    item: Ref
    counter: int | None


@dataclass(frozen=True)
class Outline:
    """A loop.

    Attributes:
        condition: Whether there is another turn.
        body: One turn.
        constants: The variables whose value is known before the first one.
    """

    condition: Flat
    body: Flat
    constants: Mapping[int, np.ndarray[Any, Any]]

    @functools.cached_property
    def invariant(self) -> frozenset[int]:
        """Variables that each turn returns as they are."""
        body = self.body
        pairs = enumerate(zip(body.arguments, body.results, strict=True))
        return frozenset(at for at, (argument, result) in pairs if _origin(body, result) == argument)

    @functools.cached_property
    def counters(self) -> Mapping[int, int]:
        """Variables to which each turn adds the same number, with that number."""
        found = {}
        for at, (argument, result) in enumerate(zip(self.body.arguments, self.body.results, strict=True)):
            step = _step(self.body, _origin(self.body, result))
            added = None if step is None else self._added(step, argument)
            if added:
                found[at] = added
        return found

    def _added(self, step: Step, argument: Ref) -> int | None:
        """What a step adds to a variable, or takes away."""
        origins = [_origin(self.body, ref) for ref in step.inputs]
        if step.op not in ("AddV2", "Add", "Sub") or argument not in origins:
            return None
        place = origins.index(argument)
        number = self._number(origins[1 - place])
        if number is None or (step.op == "Sub" and place == 1):
            return None
        return -number if step.op == "Sub" else number

    def _number(self, ref: Ref) -> int | None:
        """An integer of the body that is known."""
        value = None
        if ref in self.body.arguments:
            at = self.body.arguments.index(ref)
            value = self.constants.get(at) if at in self.invariant else None
        elif (step := _step(self.body, ref)) is not None and step.op == "Const":
            value = tf.make_ndarray(step.attributes["value"].tensor)
        return int(value) if value is not None and value.ndim == 0 and value.dtype.kind in "iu" else None

    @functools.cached_property
    def bounds(self) -> list[Bound] | None:
        """All that the condition asks; ``None`` where it asks anything but that counters are below a limit."""
        found: list[Bound] = []
        waiting = [self.condition.results[0]]
        while waiting:
            step = _step(self.condition, _origin(self.condition, waiting.pop()))
            if step is not None and step.op == "LogicalAnd":
                waiting += step.inputs
                continue
            bound = None if step is None else self._bound(step)
            if bound is None:
                return None
            found.append(bound)
        return found

    def _bound(self, step: Step) -> Bound | None:
        if step.op not in _COMPARED:
            return None
        way, extra = _COMPARED[step.op]
        origins = [_origin(self.condition, ref) for ref in step.inputs]
        for place, direction in ((0, way), (1, -way)):
            if origins[place] in self.condition.arguments:
                counter = self.condition.arguments.index(origins[place])
                if self.counters.get(counter, 0) * direction > 0 and self._stays(step.inputs[1 - place]):
                    return Bound(counter, step.inputs[1 - place], extra)
        return None

    def _stays(self, ref: Ref) -> bool:
        """Whether a value of the condition's function is the same in every turn."""
        arguments = self.condition.arguments
        steps = {step.name: step for step in self.condition.steps}
        waiting = [ref]
        while waiting:
            found = waiting.pop()
            if found in arguments:
                if arguments.index(found) not in self.invariant:
                    return False
            else:
                waiting += steps[found[0]].inputs
        return True

    @functools.cached_property
    def collected(self) -> Mapping[int, Collected]:
        """Lists that nothing else reads."""
        found = {}
        for at, (argument, result) in enumerate(zip(self.body.arguments, self.body.results, strict=True)):
            step = _step(self.body, _origin(self.body, result))
            if step is None or _readers(self.body, argument) != [step.name]:
                continue
            if step.op == "TensorListPushBack" and _origin(self.body, step.inputs[0]) == argument:
                found[at] = Collected(at, step.inputs[1], None)
            elif step.op == "TensorListSetItem" and _origin(self.body, step.inputs[0]) == argument:
                place = _origin(self.body, step.inputs[1])
                counter = self.body.arguments.index(place) if place in self.body.arguments else -1
                if self.counters.get(counter) == 1:
                    found[at] = Collected(at, step.inputs[2], counter)
        return found


def _step(flat: Flat, ref: Ref) -> Step | None:
    return next((step for step in flat.steps if step.name == ref[0]), None)


def _origin(flat: Flat, ref: Ref) -> Ref:
    """What a value is the same as."""
    while (step := _step(flat, ref)) is not None and step.op in SAME:
        ref = step.inputs[ref[1]]
    return ref


def _readers(flat: Flat, ref: Ref) -> list[str]:
    """Steps that read a value, or one that is the same, other than by passing it on."""
    return [
        step.name
        for step in flat.steps
        if step.op not in SAME and any(_origin(flat, each) == ref for each in step.inputs)
    ]


def needed(flat: Flat, results: Sequence[Ref]) -> Flat:
    """The function with other results, and without what they do not depend on."""
    wanted = {name for name, _ in results}
    kept: list[Step] = []
    for step in reversed(flat.steps):
        if step.name in wanted:
            kept.append(step)
            wanted |= {name for name, _ in step.inputs}
    return Flat(flat.arguments, kept[::-1], results)


def setters(flat: Flat, at: int) -> list[Step]:
    """The steps that put an item into the list that is an argument."""
    return [step for step in flat.steps if step.op in ITEMS and _origin(flat, step.inputs[0]) == flat.arguments[at]]
