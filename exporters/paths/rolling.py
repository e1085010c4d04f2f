"""A loop that Python unrolled, as one ONNX Loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.paths.bodies import Body
from entrepot.exporters.paths.expression import Expression
from entrepot.exporters.paths.merging import common_conditions, forget_shapes, known_formulas, symbolic_inputs, where
from entrepot.exporters.paths.path import Path
from entrepot.exporters.paths.reading import (
    Carried,
    Computed,
    Irregular,
    Item,
    Items,
    Last,
    Read,
    Reader,
    Same,
)
from entrepot.exporters.paths.unrolled import JOINING, Key, Peel, Unrolled, taken_apart
from entrepot.exporters.paths.writing import Writer, as_expression, computed
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


def _read(paths: Sequence[Path], groups: Sequence[Group]) -> Roller | None:
    """What is to be rewritten, with as many iterations in loops as are alike."""
    peeled: dict[int, int] = {}
    while True:
        captures = taken_apart(paths, {loop: _PEELS[at] for loop, at in peeled.items()})
        if captures is None or any(len(steps) < _FEWEST for each in captures for steps in each.loops):
            return None
        roller = Roller(captures, Reader(captures, known_formulas(paths)), groups)
        try:
            roller.read()
        except Irregular as reason:
            if reason.loop is None or peeled.get(reason.loop, 0) + 1 == len(_PEELS):
                raise
            peeled[reason.loop] = peeled.get(reason.loop, 0) + 1
        else:
            return roller


def columns(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """What is at each place of several lists.

    Raises:
        Irregular: Some are longer than others.
    """
    if len({len(row) for row in rows}) > 1:
        raise Irregular("captures list more or fewer values")
    return list(zip(*rows, strict=True))


_FEWEST = 2
"""Iterations in each capture: fewer show no rule."""


class Roller:
    """Rewrites the first capture."""

    def __init__(self, captures: Sequence[Unrolled], reader: Reader, groups: Sequence[Group]) -> None:
        self._captures = captures
        self.mine = captures[0]
        self._graph = self.mine.path.graph.graph
        self._reader = reader
        self.sizes = {group.symbol: where(self.mine.path.graph, group) for group in groups if group.formula is None}
        self.writer = Writer(self._graph, self.sizes)
        self.stacked: dict[tuple[int, Key], onnx_ir.Value] = {}
        self.final: dict[tuple[int, Key], onnx_ir.Value] = {}
        self._made = 0

    def read(self) -> None:
        """Everything, before anything is changed.

        Raises:
            Irregular: There is no rule in it.
        """
        self._singles = singles = [self._read_single(at) for at in range(len(self.mine.single))]
        self._outputs = outputs = [
            self._reader.outside(values)
            for values in columns([each.path.graph.graph.outputs for each in self._captures])
        ]
        self._loops = loops = [self._read_loop(at) for at in range(len(self.mine.loops))]
        carried = {
            (at, read.key)
            for at, reads in enumerate(loops)
            for node in reads
            for read in node
            if isinstance(read, Carried)
        }
        self.wanted = {
            (each.loop, each.key)
            for each in self._reads(singles, outputs, loops)
            if isinstance(each, Item | Items) or (isinstance(each, Last) and (each.loop, each.key) not in carried)
        }
        self._repeats = [self._reader.count(at) for at in range(len(self.mine.loops))]

    def write(self) -> None:
        """Put loops in the place of iterations."""
        self.counts = [self.writer.scalar(as_expression(count), onnx_ir.DataType.INT64) for count in self._repeats]
        for at, reads in enumerate(self._loops):
            self._write_loop(at, reads)
        for node, found in zip(self.mine.single, self._singles, strict=True):
            self._rewire(node, found)
        for at, read in enumerate(self._outputs):
            if not isinstance(read, Same):
                self._graph.outputs[at] = self._named(
                    self.outer(read, self._graph.outputs[at], len(self._graph)), self._graph.outputs[at]
                )
        for steps in self.mine.loops:
            self._graph.remove([node for nodes in steps for node in nodes], safe=False)
        self.writer.place()

    def _reads(self, singles: Any, outputs: Any, loops: Any) -> Iterator[Read]:
        yield from outputs
        for reads in singles:
            yield from (read for _, read in reads)
        for reads in loops:
            for read in (read for node in reads for read in node):
                yield read
                if isinstance(read, Carried):
                    yield read.first

    def _read_single(self, at: int) -> list[tuple[int, Read]]:
        nodes = [each.single[at] for each in self._captures]
        if nodes[0].op_type == JOINING:
            return self._reader.joined([node.inputs for node in nodes])
        return list(enumerate(map(self._reader.outside, columns([node.inputs for node in nodes]))))

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
        body = Body(self, loop, reads)
        node = body.node()
        anchor = self.mine.loops[loop][-1][-1]
        self._graph.insert_after(anchor, [*body.before, node])

    def _rewire(self, node: onnx_ir.Node, reads: list[tuple[int, Read]]) -> None:
        if len(reads) == len(node.inputs) and all(isinstance(read, Same) for _, read in reads):
            return
        values = [self.outer(read, node.inputs[at], node) for at, read in reads]
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

    def outer(self, read: Read, value: onnx_ir.Value | None, before: Any) -> onnx_ir.Value | None:
        """What is read outside of all loops, with nodes that make it put before a node."""
        place = self._placer(before)
        match read:
            case Same():
                return value
            case Computed(parts):
                return computed(self.writer, value, parts)
            case Last(loop, key) if (loop, key) in self.final:
                return self.final[loop, key]
            case Last(loop, key):
                return place("Gather", self.stacked[loop, key], self.number(-1), axis=0)
            case Item(loop, key, step):
                return place("Gather", self.stacked[loop, key], self._scalar(step), axis=0)
            case Items():
                return self._listed(read, before)
        raise Irregular("a value of a loop is read outside of it")

    def _listed(self, read: Items, before: onnx_ir.Node) -> onnx_ir.Value:
        """What iterations made, joined along the axis of the Concat that read them one by one."""
        place = self._placer(before)
        stacked = self.stacked[read.loop, read.key]
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
        return self.writer.constant(np.array(number, np.int64))

    def _scalar(self, step: Expression | int) -> onnx_ir.Value:
        return self.writer.scalar(as_expression(step), onnx_ir.DataType.INT64)

    def _named(self, value: onnx_ir.Value | None, old: onnx_ir.Value) -> onnx_ir.Value:
        assert value is not None
        value.type, value.shape = old.type, old.shape
        return value
