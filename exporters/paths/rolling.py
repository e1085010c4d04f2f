"""A loop that Python unrolled, as one ONNX Loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.paths.expression import Expression
from entrepot.exporters.paths.merging import common_conditions, forget_shapes, known_formulas, symbolic_inputs, where
from entrepot.exporters.paths.outline import array_of
from entrepot.exporters.paths.path import Path
from entrepot.exporters.paths.reading import (
    STEP,
    Carried,
    Computed,
    Irregular,
    Item,
    Items,
    Last,
    Local,
    Read,
    Reader,
    Same,
)
from entrepot.exporters.paths.unrolled import JOINING, Key, Peel, Unrolled, taken_apart
from entrepot.exporters.paths.writing import Writer
from entrepot.ir.copying import copy_graphs


def rolled(paths: Sequence[Path], groups: Sequence[Group]) -> Path | None:
    """One path with loops in place of captures that repeat parts of themselves; ``None`` if they do not.

    Raises:
        Irregular: They do, but the repetitions differ in more than what changes from one iteration to the next.
    """
    model = copy_graphs(paths[0].graph)
    first = Path(model, paths[0].sizes, paths[0].conditions, paths[0].weights, paths[0].numbers)
    roller = _read([first, *paths[1:]], groups)
    if roller is None:
        return None
    symbolic_inputs(model, groups)
    roller.write()
    forget_shapes(model, [path.graph for path in paths], paths, groups)
    return Path(model, paths[0].sizes, common_conditions(paths), paths[0].weights, paths[0].numbers)


_PEELS: tuple[Peel, ...] = ((0, 0), (1, 0), (0, 1), (1, 1))
"""The first iteration may read something else than the others, the last one may be shorter."""


def _read(paths: Sequence[Path], groups: Sequence[Group]) -> _Roller | None:
    """What is to be rewritten, with as many iterations in loops as are alike."""
    peeled: dict[int, int] = {}
    while True:
        captures = taken_apart(paths, {loop: _PEELS[at] for loop, at in peeled.items()})
        if captures is None or any(len(steps) < _FEWEST for each in captures for steps in each.loops):
            return None
        roller = _Roller(captures, Reader(captures, known_formulas(paths)), groups)
        try:
            roller.read()
        except Irregular as reason:
            if reason.loop is None or peeled.get(reason.loop, 0) + 1 == len(_PEELS):
                raise
            peeled[reason.loop] = peeled.get(reason.loop, 0) + 1
        else:
            return roller


_FEWEST = 2
"""Iterations in each capture: fewer show no rule."""


class _Roller:
    """Rewrites the first capture."""

    def __init__(self, captures: Sequence[Unrolled], reader: Reader, groups: Sequence[Group]) -> None:
        self._captures = captures
        self._mine = captures[0]
        self._graph = self._mine.path.graph.graph
        self._reader = reader
        self._sizes = {group.symbol: where(self._mine.path.graph, group) for group in groups}
        self._writer = Writer(self._graph, self._sizes)
        self._stacked: dict[tuple[int, Key], onnx_ir.Value] = {}
        self._final: dict[tuple[int, Key], onnx_ir.Value] = {}
        self._made = 0

    def read(self) -> None:
        """Everything, before anything is changed.

        Raises:
            Irregular: There is no rule in it.
        """
        self._singles = singles = [self._read_single(at) for at in range(len(self._mine.single))]
        self._outputs = outputs = [
            self._reader.outside(values)
            for values in self._columns([each.path.graph.graph.outputs for each in self._captures])
        ]
        self._loops = loops = [self._read_loop(at) for at in range(len(self._mine.loops))]
        carried = {
            (at, read.key)
            for at, reads in enumerate(loops)
            for node in reads
            for read in node
            if isinstance(read, Carried)
        }
        self._wanted = {
            (each.loop, each.key)
            for each in self._reads(singles, outputs, loops)
            if isinstance(each, Item | Items) or (isinstance(each, Last) and (each.loop, each.key) not in carried)
        }
        self._repeats = [self._reader.count(at) for at in range(len(self._mine.loops))]

    def write(self) -> None:
        """Put loops in the place of iterations."""
        self._counts = [self._writer.scalar(_expression(count), onnx_ir.DataType.INT64) for count in self._repeats]
        for at, reads in enumerate(self._loops):
            self._write_loop(at, reads)
        for node, reads in zip(self._mine.single, self._singles, strict=True):
            self._rewire(node, reads)
        for at, read in enumerate(self._outputs):
            if not isinstance(read, Same):
                self._graph.outputs[at] = self._named(
                    self._outer(read, self._graph.outputs[at], len(self._graph)), self._graph.outputs[at]
                )
        for steps in self._mine.loops:
            self._graph.remove([node for nodes in steps for node in nodes], safe=False)
        self._writer.place()

    def _reads(self, singles: Any, outputs: Any, loops: Any) -> Iterator[Read]:
        yield from outputs
        for reads in singles:
            yield from (read for _, read in reads)
        for reads in loops:
            for read in (read for node in reads for read in node):
                yield read
                if isinstance(read, Carried):
                    yield read.first

    def _columns(self, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        return list(zip(*rows, strict=True))

    def _read_single(self, at: int) -> list[tuple[int, Read]]:
        nodes = [each.single[at] for each in self._captures]
        if nodes[0].op_type == JOINING:
            return self._reader.joined([node.inputs for node in nodes])
        return list(enumerate(map(self._reader.outside, self._columns([node.inputs for node in nodes]))))

    def _read_loop(self, loop: int) -> list[list[Read]]:
        steps = [each.loops[loop] for each in self._captures]
        found = []
        for at, node in enumerate(steps[0][0]):
            if any(len(nodes[at].inputs) != len(node.inputs) for mine in steps for nodes in mine):
                raise Irregular("a list of values differs inside a loop")
            found.append(
                [
                    self._reader.inside(loop, [[nodes[at].inputs[slot] for nodes in mine] for mine in steps])
                    for slot in range(len(node.inputs))
                ]
            )
        return found

    def _write_loop(self, loop: int, reads: list[list[Read]]) -> None:
        body = _Body(self, loop, reads)
        node = body.node()
        anchor = self._mine.loops[loop][-1][-1]
        self._graph.insert_after(anchor, [*body.before, node])

    def _rewire(self, node: onnx_ir.Node, reads: list[tuple[int, Read]]) -> None:
        if len(reads) == len(node.inputs) and all(isinstance(read, Same) for _, read in reads):
            return
        values = [self._outer(read, node.inputs[at], node) for at, read in reads]
        if len(values) == len(node.inputs):
            for at, value in enumerate(values):
                node.replace_input_with(at, value)
            return
        fresh = onnx_ir.node(node.op_type, values, attributes=node.attributes)
        fresh.metadata_props.update(node.metadata_props)
        self._graph.insert_before(node, fresh)
        old, new = node.outputs[0], fresh.outputs[0]
        new.name, new.type = old.name, old.type
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        self._graph.remove(node)

    def _outer(self, read: Read, value: onnx_ir.Value | None, before: Any) -> onnx_ir.Value | None:
        """What is read outside of all loops, with nodes that make it put before a node."""
        place = self._placer(before)
        match read:
            case Same():
                return value
            case Computed(parts):
                return computed(self._writer, value, parts)
            case Last(loop, key) if (loop, key) in self._final:
                return self._final[loop, key]
            case Last(loop, key):
                return place("Gather", self._stacked[loop, key], self.number(-1), axis=0)
            case Item(loop, key, step):
                return place("Gather", self._stacked[loop, key], self._scalar(step), axis=0)
            case Items():
                return self._listed(read, before)
        raise Irregular("a value of a loop is read outside of it")

    def _listed(self, read: Items, before: onnx_ir.Node) -> onnx_ir.Value:
        """What iterations made, joined along the axis of the Concat that read them one by one."""
        place = self._placer(before)
        stacked = self._stacked[read.loop, read.key]
        if not read.whole:
            step = -1 if read.down else 1
            beyond = place("Add", self._scalar(read.last), self.number(step))
            steps = place("Range", self._scalar(read.first), beyond, self.number(step))
            stacked = place("Gather", stacked, steps, axis=0)
        shape_ = before.outputs[0].shape
        if shape_ is None:
            raise Irregular("the rank of what a loop makes is not known")
        rank = len(shape_)
        axis = before.attributes["axis"].as_int() % rank
        turned = place("Transpose", stacked, perm=[*range(1, axis + 1), 0, *range(axis + 1, rank + 1)])
        merged = place(
            "Mul",
            place("Shape", turned, start=axis, end=axis + 1),
            place("Shape", turned, start=axis + 1, end=axis + 2),
        )
        shape = [place("Shape", turned, start=0, end=axis)] if axis else []
        shape.append(merged)
        if axis + 1 < rank:
            shape.append(place("Shape", turned, start=axis + 2, end=rank + 1))
        return place("Reshape", turned, place("Concat", *shape, axis=0) if len(shape) > 1 else merged, allowzero=1)

    def _placer(self, before: Any) -> Any:
        def place(op_type: str, *inputs: onnx_ir.Value, **attributes: Any) -> onnx_ir.Value:
            node = onnx_ir.node(op_type, list(inputs), attributes)
            self.name(node)
            if isinstance(before, onnx_ir.Node):
                self._graph.insert_before(before, node)
            else:
                self._graph.append(node)
            return node.outputs[0]

        return place

    def name(self, node: onnx_ir.Node) -> None:
        """Give a new node and its results names of their own."""
        self._made += 1
        node.name = f"rolled_{self._made}"
        for at, value in enumerate(node.outputs):
            value.name = f"rolled_{self._made}_{at}"

    def number(self, number: int) -> onnx_ir.Value:
        """A scalar."""
        return self._writer.constant(np.array(number, np.int64))

    def _scalar(self, step: Expression | int) -> onnx_ir.Value:
        return self._writer.scalar(_expression(step), onnx_ir.DataType.INT64)

    def _named(self, value: onnx_ir.Value | None, old: onnx_ir.Value) -> onnx_ir.Value:
        assert value is not None
        value.type, value.shape = old.type, old.shape
        return value


class _Body:
    """The iterations of one loop as a Loop's body, written from the second one of the first capture."""

    def __init__(self, roller: _Roller, loop: int, reads: list[list[Read]]) -> None:
        self._roller = roller
        self._loop = loop
        self._nodes = roller._mine.loops[loop][1]
        self._reads = reads
        self.before: list[onnx_ir.Node] = []
        self._step = onnx_ir.Value(
            name=f"loop{loop}_step", type=onnx_ir.TensorType(onnx_ir.DataType.INT64), shape=onnx_ir.Shape([])
        )
        self._go = onnx_ir.Value(
            name=f"loop{loop}_go", type=onnx_ir.TensorType(onnx_ir.DataType.BOOL), shape=onnx_ir.Shape([])
        )
        self._values: dict[Key, onnx_ir.Value] = {}
        self._carried: dict[Any, tuple[onnx_ir.Value, onnx_ir.Value | None, Key]] = {}
        self._inside: list[onnx_ir.Node] = []

    def node(self) -> onnx_ir.Node:
        """The Loop."""
        roller, loop = self._roller, self._loop
        scratch = onnx_ir.Graph([self._step, self._go], [], nodes=[], name=f"loop{loop}")
        self._writer = Writer(scratch, {**roller._sizes, STEP: (self._step, -1)}, f"loop{loop}_size")
        for at, node in enumerate(self._nodes):
            self._copy(at, node)
        stacked = sorted(key for where_, key in roller._wanted if where_ == loop)
        results = [self._passed(self._go), *(self._passed(self._values[key]) for *_, key in self._carried.values())]
        results += [self._passed(self._values[key]) for key in stacked]
        scratch.inputs.extend(value for value, *_ in self._carried.values())
        scratch.extend(self._inside)
        self._writer.place()
        scratch.outputs.extend(results)
        node = onnx_ir.node(
            "Loop",
            [
                roller._counts[loop],
                roller._writer.constant(np.array(True)),
                *(first for _, first, _ in self._carried.values()),
            ],
            {"body": scratch},
            num_outputs=len(results) - 1,
        )
        roller.name(node)
        self._publish(node, stacked)
        return node

    def _publish(self, node: onnx_ir.Node, stacked: Sequence[Key]) -> None:
        for value, (inner, _, key) in zip(node.outputs, self._carried.values(), strict=False):
            value.type = inner.type
            self._roller._final[self._loop, key] = value
        for value, key in zip(node.outputs[len(self._carried) :], stacked, strict=True):
            value.type = self._values[key].type
            self._roller._stacked[self._loop, key] = value

    def _copy(self, at: int, node: onnx_ir.Node) -> None:
        inputs = [self._input(read, value) for read, value in zip(self._reads[at], node.inputs, strict=True)]
        copy = onnx_ir.node(node.op_type, inputs, node.attributes, domain=node.domain, num_outputs=len(node.outputs))
        copy.metadata_props.update(node.metadata_props)
        for output, (mine, theirs) in enumerate(zip(copy.outputs, node.outputs, strict=True)):
            mine.name, mine.type = f"loop{self._loop}_{at}_{output}", theirs.type
            self._values[at, output] = mine
        self._inside.append(copy)

    def _input(self, read: Read, value: onnx_ir.Value | None) -> onnx_ir.Value | None:
        match read:
            case Same():
                return value
            case Computed(parts):
                return computed(self._writer, value, parts)
            case Local(key):
                return self._values[key]
            case Carried():
                return self._carry(read)
            case Last(loop, key) if (loop, key) in self._roller._final:
                return self._roller._final[loop, key]
            case Last(loop, key):
                return self._gathered(loop, key, self._writer.constant(np.array(-1, np.int64)))
            case Item(loop, key, step):
                return self._gathered(loop, key, self._writer.scalar(_expression(step), onnx_ir.DataType.INT64))
        raise Irregular("an iteration reads a list of values")

    def _gathered(self, loop: int, key: Key, step: onnx_ir.Value) -> onnx_ir.Value:
        node = onnx_ir.node("Gather", [self._roller._stacked[loop, key], step], {"axis": 0})
        self._roller.name(node)
        self._inside.append(node)
        return node.outputs[0]

    def _carry(self, read: Carried) -> onnx_ir.Value:
        known = (read.key, read.first, read.where)
        if known not in self._carried:
            made = self._nodes[read.key[0]].outputs[read.key[1]]
            value = onnx_ir.Value(name=f"loop{self._loop}_state{len(self._carried)}", type=made.type)
            self._carried[known] = value, self._first(read), read.key
        return self._carried[known][0]

    def _first(self, read: Carried) -> onnx_ir.Value | None:
        steps = self._roller._mine.loops[self._loop][0]
        slots = [
            value
            for node, reads in zip(steps, self._reads, strict=True)
            for value, each in zip(node.inputs, reads, strict=True)
            if each == read
        ]
        return self._roller._outer(read.first, slots[0], steps[0])

    def _passed(self, value: onnx_ir.Value) -> onnx_ir.Value:
        """A result of the body: each needs a value of its own."""
        node = onnx_ir.node("Identity", [value])
        self._roller.name(node)
        node.outputs[0].type = value.type
        self._inside.append(node)
        return node.outputs[0]


def computed(writer: Writer, value: onnx_ir.Value | None, parts: Sequence[Expression | float]) -> onnx_ir.Value:
    """A constant that is computed from sizes now."""
    assert value is not None
    array = array_of(value)
    assert array is not None
    dtype = onnx_ir.DataType.from_numpy(array.dtype)
    if array.ndim == 0:
        return writer.scalar(_expression(parts[0]), dtype)
    vector = writer.vector(list(parts), dtype)
    return vector if array.ndim == 1 else writer("Reshape", vector, writer.constant(np.array(array.shape, np.int64)))


def _expression(number: Expression | float) -> Expression:
    return number if isinstance(number, Expression) else Expression(repr(number))
