"""While as Loop: with a number of turns where counters say how many there are, else with its condition."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.tensorflow.dtypes import numpy_type, onnx_type
from entrepot.exporters.tensorflow.flow.lists import TensorList
from entrepot.exporters.tensorflow.flow.outline import ITEMS, Bound, Outline, needed, setters
from entrepot.exporters.tensorflow.node import Node, Shape, known
from entrepot.exporters.tensorflow.table import translates

_Dims = dict[int, Shape]


@translates("While", "StatelessWhile", handles=True)
def loop(node: Node, build: Builder, *values: Any) -> Any:
    """A loop."""
    return _Loop(node, build, values).written()


@dataclass
class _Turns:
    """How often a loop runs.

    Attributes:
        count: The number of turns, an int64 scalar.
        source: What it is the same as, as the graph had it; for the lengths of lists.
    """

    count: ir.Value
    source: ir.Value | None


class _Loop:
    """One loop that is being written.

    Args:
        node: The While.
        build: Where the Loop goes.
        values: What the loop starts with.
    """

    def __init__(self, node: Node, build: Builder, values: Sequence[Any]) -> None:
        walk = node.walk
        self.node, self.build, self.walk = node, build, walk
        constants = {at: array for at, value in enumerate(values) if (array := known(value)) is not None}
        self.outline = Outline(walk.flat(node["cond"]), walk.flat(node["body"]), constants)
        self.types = walk.types(node["body"])
        self.values = list(values)
        self.dims: _Dims = {}
        self.turns = self._turns()
        self.counted = set(self.outline.counters) if self.turns is not None else set()
        self.scanned = self._scanned()
        skipped = {*self.outline.invariant, *self.counted, *self.scanned}
        self.carried = [at for at in range(len(values)) if at not in skipped]

    def _turns(self) -> _Turns | None:
        """The number of turns, if it is known before the loop starts."""
        bounds, build = self.outline.bounds, self.build
        if not bounds:
            return None
        flat = needed(self.outline.condition, [bound.limit for bound in bounds])
        limits = self.walk.flatly(flat, build, self.values, self.walk.types(self.node["cond"]))
        counters = self.outline.counters
        plain = all(
            _is(self.values[bound.counter], 0) and not bound.extra and counters[bound.counter] == 1 for bound in bounds
        )
        first = limits[0]
        if plain and all(each is first or _equal(each, first) for each in limits):
            return _Turns(build.cast(first, np.int64), first)
        counts = [self._count(bound, limit) for bound, limit in zip(bounds, limits, strict=True)]
        return _Turns(functools.reduce(functools.partial(build.op, "Min"), counts), None)

    def _count(self, bound: Bound, limit: ir.Value) -> ir.Value:
        """How many turns it takes until a counter is at its limit."""
        build, step = self.build, self.outline.counters[bound.counter]
        start, end = build.cast(self.values[bound.counter], np.int64), build.cast(limit, np.int64)
        way: ir.Value = build.op("Sub", end, start) if step > 0 else build.op("Sub", start, end)
        way = build.op("Add", way, bound.extra + abs(step) - 1)
        return way if abs(step) == 1 else build.op("Div", build.op("Max", way, 0), abs(step))

    def _scanned(self) -> set[int]:
        """Lists that are collected turn by turn, from their beginning."""
        found = set()
        for at, collected in self.outline.collected.items():
            items = self.values[at]
            if not isinstance(items, TensorList) or items.items is not None:
                continue
            if collected.counter is None:
                fits = _is(items.size, 0)
            else:
                fits = _is(self.values[collected.counter], 0)
            if fits:
                found.add(at)
        return found

    # what goes in ----------------------------------------------------------------------------------------------------

    def written(self) -> list[Any]:
        """Write the Loop; returns what the variables are after it."""
        starts = {at: self._start(at) for at in self.carried}
        self._settle_dims(starts)
        body = self.build.body("body")
        iteration = body.input(f"{self.node.name}/turn", np.int64, [])
        going = body.input(f"{self.node.name}/going", np.bool_, [])
        inner = self._inside(body, iteration, starts)
        results, items = self._turn(body, inner)
        again = going if self.turns is not None else self._goes_on(body, [*results])
        carried = [self._carried_out(body, at, results[at]) for at in self.carried]
        scans = sorted(self.scanned)
        graph = body.graph([again, *carried, *map(items.__getitem__, scans)])
        first = None if self.turns is not None else self._goes_on(self.build, self.values)
        count = len(carried) + len(scans)
        if not count:
            return self._after({}, {})
        turns = None if self.turns is None else self.turns.count
        made = self.build.op("Loop", turns, first, *starts.values(), outputs=count, body=graph)
        outputs = made if isinstance(made, tuple) else (made,)
        ends = dict(zip(self.carried, outputs, strict=False))
        scanned = dict(zip(scans, outputs[len(carried) :], strict=True))
        for at, output in ends.items():
            typed(output, starts[at].dtype, self._dims_of(at))
        for at, output in scanned.items():
            dims = _plain(items[at])
            typed(output, items[at].dtype, None if dims is None else [None, *dims])
        return self._after(ends, scanned)

    def _start(self, at: int) -> ir.Value:
        value = self.values[at]
        if isinstance(value, TensorList):
            return self._items(at, value)
        if not isinstance(value, ir.Value):
            self.node.refuse("changes which variable or table it uses")
        return value

    def _items(self, at: int, items: TensorList) -> ir.Value:
        """The items of a list before the loop; where none is set, their shape is that of the first one to be."""
        items = items.narrowed(self._item_shape(at))
        flat = self.outline.body
        refs = [step.inputs[ITEMS[step.op]] for step in setters(flat, at)]
        if items.items is not None or not refs or (items.shape is not None and None not in items.shape):
            return items.whole(self.node, self.build)
        first = self.walk.flatly(needed(flat, refs[:1]), self.build, self.values, self.types)[0]
        return items.whole(self.node, self.build, like=first)

    def _item_shape(self, at: int) -> Shape:
        """The shape of what the body sets in a list."""
        flat = self.outline.body
        refs = [step.inputs[ITEMS[step.op]] for step in setters(flat, at)]
        return self.walk.shapes(refs[:1], flat, self.values, self.types, self._varying())[0] if refs else None

    def _varying(self) -> _Dims:
        """The shapes of what may be another value in the next turn."""
        tensors = {at: value for at, value in enumerate(self.values) if isinstance(value, ir.Value)}
        return {
            at: self.dims.get(at, _plain(value)) for at, value in tensors.items() if at not in self.outline.invariant
        }

    def _settle_dims(self, starts: Mapping[int, ir.Value]) -> None:
        """Sizes of what is carried that no turn changes, found by letting those vary that do."""
        for at, start in starts.items():
            dims = _plain(start)
            self.dims[at] = dims if dims is None or isinstance(self.values[at], ir.Value) else (None, *dims[1:])
        for _ in range(3):
            shapes = self.walk.shapes(
                self.outline.body.results, self.outline.body, self.values, self.types, self._varying()
            )
            found = {}
            for at in self.carried:
                after = self.dims[at] if isinstance(self.values[at], TensorList) else shapes[at]
                found[at] = _common(self.dims[at], after)
            if found == self.dims:
                return
            self.dims = found
        self.dims = {
            at: self.dims[at] if isinstance(self.values[at], TensorList) else self.node.result_shape(at)
            for at in self.carried
        }

    def _dims_of(self, at: int) -> list[int | None] | None:
        dims = self.dims[at]
        return None if dims is None else list(dims)

    def _inside(self, body: Builder, iteration: ir.Value, starts: Mapping[int, ir.Value]) -> list[Any]:
        """The variables at the beginning of a turn."""
        inner = list(self.values)
        for at, start in starts.items():
            value = body.input(f"{self.node.name}/{at}", start.dtype, self._dims_of(at))
            items = self.values[at]
            inner[at] = items.holding(value) if isinstance(items, TensorList) else value
        for at in self.counted:
            inner[at] = self._after_turns(body, at, iteration)
        return inner

    # what comes out --------------------------------------------------------------------------------------------------

    def _turn(self, body: Builder, inner: Sequence[Any]) -> tuple[list[Any], dict[int, ir.Value]]:
        """The variables after a turn, and the items that it adds to lists."""
        flat, lists = self.outline.body, sorted(self.scanned)
        wanted = [*self.carried, *lists]
        refs = [flat.results[at] for at in self.carried] + [self.outline.collected[at].item for at in lists]
        made = self.walk.flatly(needed(flat, refs), body, inner, self.types)
        results = list(inner)
        for at, value in zip(wanted, made, strict=True):
            if at not in self.scanned:
                results[at] = value
        return results, dict(zip(lists, made[len(self.carried) :], strict=True))

    def _carried_out(self, body: Builder, at: int, value: Any) -> ir.Value:
        if isinstance(value, TensorList):
            return value.whole(self.node, body)
        if not isinstance(value, ir.Value):
            self.node.refuse("changes which variable or table it uses")
        return value

    def _goes_on(self, build: Builder, values: Sequence[Any]) -> ir.Value:
        made: ir.Value = self.walk.function(self.node["cond"], build, values)[0]
        return build.op("Squeeze", made) if made.shape is not None and len(made.shape) else made

    def _after(self, carried: Mapping[int, ir.Value], scans: Mapping[int, ir.Value]) -> list[Any]:
        result = list(self.values)
        for at, value in carried.items():
            items = self.values[at]
            result[at] = items.holding(value) if isinstance(items, TensorList) else value
        for at, value in scans.items():
            result[at] = self.values[at].holding(self._completed(at, value))
        if self.turns is not None:
            turns = self.build.op("Max", self.turns.count, 0)
            result = [
                self._after_turns(self.build, at, turns) if at in self.counted else value
                for at, value in enumerate(result)
            ]
        return result

    def _after_turns(self, build: Builder, at: int, turns: ir.Value) -> ir.Value:
        """A counter after so many turns."""
        kind, step = onnx_type(numpy_type(self.types[at])), self.outline.counters[at]
        way = build.cast(turns if step == 1 else build.op("Mul", turns, step), kind)
        return typed(way if _is(self.values[at], 0) else build.op("Add", way, self.values[at]), kind, [])

    def _completed(self, at: int, items: ir.Value) -> ir.Value:
        """The items that were collected, and zeros for those that were not."""
        wanted = self.values[at]
        source = None if self.turns is None else self.turns.source
        full = source is not None and (wanted.size is source or _equal(wanted.size, source))
        if full or self.outline.collected[at].counter is None:
            return items
        build = self.build
        missing = build.op("Sub", wanted.length(build), build.size(items, 0))
        zeros = wanted.zeros(build, build.op("Max", missing, 0), build.shape(items, 1))
        return typed(build.op("Concat", items, zeros, axis=0), items.dtype, _plain(items))


def _is(value: ir.Value, number: int) -> bool:
    found = known(value)
    return found is not None and found.size == 1 and int(found.item()) == number


def _equal(one: ir.Value, two: ir.Value) -> bool:
    a, b = known(one), known(two)
    return a is not None and b is not None and a.size == b.size == 1 and int(a.item()) == int(b.item())


def _plain(value: ir.Value) -> Shape:
    if value.shape is None:
        return None
    return tuple(dim if isinstance(dim, int) else None for dim in value.shape)


def _common(one: Shape, two: Shape) -> Shape:
    if one is None or two is None or len(one) != len(two):
        return None
    return tuple(a if a == b else None for a, b in zip(one, two, strict=True))
