"""What a Loop reads of a tensor that it writes, if it is what one of the turns before has written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.graphs import has_references, replace, write_constant
from entrepot.ir.passes.loops import rebuilt
from entrepot.ir.passes.turns import Place, Slots, place_of
from entrepot.ir.typing.query import Types

_END = np.iinfo(np.int64).max


def read_back(carried: ir.Value, write: ir.Node, place: Place, axis: int, types: Types) -> Mapping[ir.Node, int] | None:
    """The nodes that read a carried tensor, and how many turns before what they read was written.

    Args:
        carried: An input of the body.
        write: Reads it as well, to write to ``place``.
        place: Of each turn.
        axis: Along which the places are.
        types: What is known of values.

    Returns:
        ``None`` if something else is read.
    """
    found: dict[ir.Node, int] = {}
    for use in carried.uses():
        if use.node is write and use.idx == 0:
            continue
        lag = _lag(use.node, place, axis, types, carried) if use.idx == 0 else None
        if lag is None or lag < 1:
            return None
        found[use.node] = lag
    return found


def _lag(node: ir.Node, place: Place, axis: int, types: Types, carried: ir.Value) -> int | None:
    rank = len(types.shape(carried) or ())
    if (node.domain, node.op_type) != ("", "Gather") or has_references(node) or types.shape(node.inputs[1]) != ():
        return None
    if node.attributes.get_int("axis", 0) % rank != axis:
        return None
    body = carried.graph
    read = place_of(node.inputs[1], body.inputs[0], types) if isinstance(body, ir.Graph) else None
    if read is None or read._replace(constant=place.constant) != place:
        return None
    return (place.constant - read.constant) * place.slope


def holds(slots: Slots, lags: Sequence[int]) -> bool:
    """Whether there are places for all that the first turns read."""
    return max(lags, default=0) <= (slots.behind if slots.backwards else slots.before)


class Remembered:
    """A Loop that carries what the last turns have written beside the tensor that they write it to.

    Args:
        loop: Which is replaced.
        at: Which of the carried tensors it is.
        write: The node that writes, slices with the axis.
        axis: Along which.
        slots: The places.
        names: Those in use.
    """

    def __init__(self, loop: ir.Node, at: int, write: ir.Node, axis: int, slots: Slots, names: Names) -> None:
        self._loop, self._at, self._write, self._axis = loop, at, write, axis
        self._slots, self._names = slots, names
        self._body = loop.attributes["body"].as_graph()

    def replaced(self, reads: Mapping[ir.Node, int]) -> ir.Node:
        """The new loop, whose body reads the tensor no longer."""
        loop, body, last = self._loop, self._body, max(reads.values())
        assert loop.graph is not None
        count, written = len(loop.inputs) - 2, self._write.inputs[2]
        starts = [self._start(lag) for lag in range(1, last + 1)]
        kept = [self._kept(lag) for lag in range(1, last + 1)]
        body.inputs.extend(kept)
        assert written is not None
        for lag, value in enumerate([written, *kept[:-1]]):
            body.outputs.insert(1 + count + lag, self._copied(value))
        for node, lag in reads.items():
            self._read(node, kept[lag - 1])
        outputs: list[ir.Value | None] = list(loop.outputs)
        outputs[count:count] = [None] * last
        again = rebuilt(loop, [*loop.inputs, *starts], outputs)
        for lag, value in enumerate(again.outputs[count : count + last], 1):
            value.name = self._names.fresh(f"{self._write.outputs[0].name}_{lag}_before")
            value.type = self._write.outputs[0].type
        loop.graph.remove(loop, safe=True)
        return again

    def _start(self, lag: int) -> ir.Value:
        """What is in a place before the first turn, as a slice; nothing if the axis is too short for a turn."""
        where, initial = self._slots, self._loop.inputs[2 + self._at]
        begin = lag - 1 - where.behind if where.backwards else where.before - lag
        end = _END if begin == -1 else begin + 1
        bounds = [
            write_constant(self._loop, np.array([each]), "bound", self._names) for each in (begin, end, self._axis)
        ]
        node = ir.node("Slice", [initial, *bounds])
        node.name = node.outputs[0].name = self._names.fresh(f"{self._write.outputs[0].name}_{lag}_start")
        assert self._loop.graph is not None
        self._loop.graph.insert_before(self._loop, node)
        return node.outputs[0]

    def _kept(self, lag: int) -> ir.Value:
        whole = self._body.inputs[2 + self._at]
        name = self._names.fresh(f"{self._write.outputs[0].name}_{lag}_last")
        shape = None if whole.shape is None else list(whole.shape)
        if shape is not None:
            shape[self._axis] = ir.SymbolicDim(None)
        return ir.Value(name=name, type=whole.type, shape=None if shape is None else ir.Shape(shape))

    def _copied(self, value: ir.Value) -> ir.Value:
        node = ir.node("Identity", [value])
        node.name = node.outputs[0].name = self._names.fresh(f"{self._write.outputs[0].name}_written")
        node.outputs[0].type, node.outputs[0].shape = value.type, value.shape
        self._body.insert_before(self._write, node)
        return node.outputs[0]

    def _read(self, node: ir.Node, kept: ir.Value) -> None:
        axes = write_constant(node, np.array([self._axis]), "axes", self._names)
        replace(node, ir.node("Squeeze", [kept, axes]))
