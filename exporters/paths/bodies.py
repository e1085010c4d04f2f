"""The iterations of an unrolled loop as the body of an ONNX Loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir

from entrepot.exporters.paths.reading import STEP, Carried, Computed, Irregular, Item, Last, Local, Read, Same
from entrepot.exporters.paths.unrolled import Key
from entrepot.exporters.paths.writing import Writer, as_expression, computed

if TYPE_CHECKING:
    from entrepot.exporters.paths.rolling import Roller


class Body:
    """The iterations of one loop as a Loop's body, written from the second one of the first capture."""

    def __init__(self, roller: Roller, loop: int, reads: list[list[Read]]) -> None:
        self._roller = roller
        self._loop = loop
        self._nodes = roller.mine.loops[loop][1]
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
        self._writer = Writer(scratch, {**roller.sizes, STEP: (self._step, -1)}, f"loop{loop}_size")
        for at, node in enumerate(self._nodes):
            self._copy(at, node)
        stacked = sorted(key for where_, key in roller.wanted if where_ == loop)
        results = [self._passed(self._go), *(self._passed(self._values[key]) for *_, key in self._carried.values())]
        results += [self._passed(self._values[key]) for key in stacked]
        scratch.inputs.extend(value for value, *_ in self._carried.values())
        scratch.extend(self._inside)
        self._writer.place()
        scratch.outputs.extend(results)
        node = onnx_ir.node(
            "Loop",
            [
                roller.counts[loop],
                roller.writer.constant(np.array(True)),
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
            self._roller.final[self._loop, key] = value
        for value, key in zip(node.outputs[len(self._carried) :], stacked, strict=True):
            value.type = self._values[key].type
            self._roller.stacked[self._loop, key] = value

    def _copy(self, at: int, node: onnx_ir.Node) -> None:
        inputs = [self._input(read, value) for read, value in zip(self._reads[at], node.inputs, strict=True)]
        copy = onnx_ir.node(node.op_type, inputs, node.attributes, domain=node.domain, num_outputs=len(node.outputs))
        copy.metadata_props.update(node.metadata_props)
        for output, (mine, theirs) in enumerate(zip(copy.outputs, node.outputs, strict=True)):
            mine.name, mine.type = f"loop{self._loop}_{at}_{output}", theirs.type
            self._values[at, output] = mine
        self._inside.append(copy)

    def _input(self, read: Read, value: onnx_ir.Value | None) -> onnx_ir.Value | None:  # noqa: PLR0911 - one per kind
        match read:
            case Same():
                return value
            case Computed(parts):
                return computed(self._writer, value, parts)
            case Local(key):
                return self._values[key]
            case Carried():
                return self._carry(read)
            case Last(loop, key) if (loop, key) in self._roller.final:
                return self._roller.final[loop, key]
            case Last(loop, key):
                return self._gathered(loop, key, self._writer.constant(np.array(-1, np.int64)))
            case Item(loop, key, step):
                return self._gathered(loop, key, self._writer.scalar(as_expression(step), onnx_ir.DataType.INT64))
        raise Irregular("an iteration reads a list of values")

    def _gathered(self, loop: int, key: Key, step: onnx_ir.Value) -> onnx_ir.Value:
        node = onnx_ir.node("Gather", [self._roller.stacked[loop, key], step], {"axis": 0})
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
        steps = self._roller.mine.loops[self._loop][0]
        slots = [
            value
            for node, reads in zip(steps, self._reads, strict=True)
            for value, each in zip(node.inputs, reads, strict=True)
            if each == read
        ]
        return self._roller.outer(read.first, slots[0], steps[0])

    def _passed(self, value: onnx_ir.Value) -> onnx_ir.Value:
        """A result of the body: each needs a value of its own."""
        node = onnx_ir.node("Identity", [value])
        self._roller.name(node)
        node.outputs[0].type = value.type
        self._inside.append(node)
        return node.outputs[0]
