from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.dims import same_dim
from entrepot.ir.passes.graphs import has_references, typed_graphs, write_constant
from entrepot.ir.passes.loops import rebuilt, take_over
from entrepot.ir.passes.read_back import Remembered, holds, read_back
from entrepot.ir.passes.turns import Place, Slots, place_of, slots
from entrepot.ir.typing.query import Types

_EMPTY_SHAPES = 14
"""The opset from which a Reshape can be told that 0 is a size."""

_WRITING = ("ScatterElements", "ScatterND")

_ALL = np.iinfo(np.int64)


class StackWrites(ir.passes.InPlacePass):
    """Stack what a Loop writes into a tensor, a slice per turn, behind the loop.

    Before: ``Loop(n, zeros)`` whose body has ``y = ScatterElements<axis = 1>(carried, Expand(turn), Unsqueeze(h))``.
    After: a Loop that returns every ``h``, and ``Transpose`` of what it returns. The tensor would be copied in each
    turn. Only where nothing reads in between more than what some turns before have written, which is then carried,
    and where the places are certainly all different. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names, modified = Names(model), False
        for graph, types in typed_graphs(model):
            if types.opsets.get("", 0) < _EMPTY_SHAPES:
                continue
            for node in list(graph):
                if node.op_type != "Loop" or node.domain or has_references(node):
                    continue
                loop: ir.Node | None = node
                while loop is not None:
                    loop = _stacked(loop, types, names)
                    modified |= loop is not None
        return ir.passes.PassResult(model, modified=modified)


class _Written(NamedTuple):
    """A carried tensor that is written only.

    Attributes:
        at: Which of those carried it is.
        write: The node that writes.
        axis: Of the tensor, along which there is a place per turn.
        slots: The places.
        reads: Nodes that read what was written some turns before, and how many.
    """

    at: int
    write: ir.Node
    axis: int
    slots: Slots
    reads: Mapping[ir.Node, int]


def _stacked(loop: ir.Node, types: Types, names: Names) -> ir.Node | None:
    """The loop that has taken the place of another, if a tensor was found in it."""
    body = loop.attributes["body"].as_graph()
    if len(loop.outputs) < len(body.outputs) - 1:  # the last ones may be left out, and the slices come behind them
        return None
    for at in range(len(loop.inputs) - 2):
        found = _written(loop, body, at, types)
        if found is not None and found.reads:
            remembered = Remembered(loop, at, found.write, found.axis, found.slots, names)
            loop = remembered.replaced(found.reads)
        if found is not None:
            return _Behind(loop, found, types, names).replaced()
    return None


def _written(loop: ir.Node, body: ir.Graph, at: int, types: Types) -> _Written | None:
    carried, result, initial = body.inputs[2 + at], body.outputs[1 + at], loop.inputs[2 + at]
    write = result.producer()
    if write is None or write.domain or write.op_type not in _WRITING or write.inputs[0] is not carried:
        return None
    if initial is None or write.graph is not body:
        return None
    if carried.is_graph_output() or result.uses() or list(body.outputs).count(result) > 1:
        return None
    axis, place = _axis(write, types), _place(write, body, types)
    if axis is None or place is None:
        return None
    where = slots(place, place_of(loop.inputs[0], None, types), initial, axis, types)
    reads = read_back(carried, write, place, axis, types)
    if where is None or reads is None or not holds(where, list(reads.values())):
        return None
    return _Written(at, write, axis, where, reads)


def _place(write: ir.Node, body: ir.Graph, types: Types) -> Place | None:
    """The one place that a turn writes to."""
    places = write.inputs[1]
    made = None if places is None or write.op_type != "ScatterElements" else places.producer()
    places = made.inputs[0] if made is not None and (made.domain, made.op_type) == ("", "Expand") else places
    shape = types.shape(places)
    if shape is None or set(shape) - {1}:
        return None
    place = place_of(places, body.inputs[0], types)
    inside = place is not None and place.size is not None and place.size.value.graph is body
    return None if inside else place  # what a size in a body is called holds for one turn


def _axis(write: ir.Node, types: Types) -> int | None:
    """The axis along which a node writes one slice; ``None`` for other nodes."""
    if has_references(write) or write.attributes.get_string("reduction", "none") != "none":
        return None
    data, places, slices = map(types.shape, write.inputs)
    if not data or slices is None or len(slices) != len(data):
        return None
    if write.op_type == "ScatterElements":
        axis = write.attributes.get_int("axis", 0) % len(data)
    elif places is not None and list(places) == [1, 1]:
        axis = 0
    else:
        return None
    wanted = [1 if each == axis else dim for each, dim in enumerate(data)]
    return axis if all(map(same_dim, slices, wanted)) else None


class _Behind:
    """A Loop without a tensor that it writes, and what makes the tensor behind it."""

    def __init__(self, loop: ir.Node, written: _Written, types: Types, names: Names) -> None:
        self._loop, self._found, self._types, self._names = loop, written, types, names
        self._body = loop.attributes["body"].as_graph()
        self._ends_early = _ends_early(loop, self._body, types)

    def replaced(self) -> ir.Node:
        loop, at, graph = self._loop, self._found.at, self._loop.graph
        initial, tensor = loop.inputs[2 + at], loop.outputs[at]
        assert graph is not None
        assert initial is not None
        self._take_out()
        inputs = [value for index, value in enumerate(loop.inputs) if index != 2 + at]
        again = rebuilt(loop, inputs, [*(value for value in loop.outputs if value is not tensor), None])
        stacked = again.outputs[-1]
        stacked.name, stacked.type = self._names.fresh(f"{tensor.name}_slices"), tensor.type
        sizes = list(self._types.shape(initial) or ())
        del sizes[self._found.axis]  # runtimes do not tell sizes that vary after no turn
        sizes = [ir.SymbolicDim(None), *(size if isinstance(size, int) else ir.SymbolicDim(None) for size in sizes)]
        stacked.shape = ir.Shape(sizes)
        last = self._laid_out(stacked, initial, sizes)
        take_over(tensor, last)
        graph.remove(loop, safe=True)
        return again

    def _is_whole(self) -> bool:
        return not (self._found.slots.before or self._found.slots.behind or self._ends_early)

    def _take_out(self) -> None:
        """Let the body return what it writes."""
        write, body = self._found.write, self._body
        written = self._slice()
        if written.producer() is None or written.graph is not body or written.is_graph_output():
            written = self._inside("Identity", [written])
        del body.outputs[1 + self._found.at]
        body.remove(write, safe=True)
        del body.inputs[2 + self._found.at]
        body.outputs.append(written)

    def _slice(self) -> ir.Value:
        """What a turn writes, without the axis."""
        write, axis = self._found.write, self._found.axis
        value = write.inputs[2]
        assert value is not None
        made, rank = value.producer(), len(self._types.shape(value) or ())
        if made is not None and (made.domain, made.op_type) == ("", "Unsqueeze") and made.inputs[0] is not None:
            axes = self._types.known.array(made.inputs[1])
            if axes is not None and [int(each) % rank for each in axes.reshape(-1)] == [axis]:
                return made.inputs[0]
        return self._inside("Squeeze", [value, self._constant([axis], write)])

    def _inside(self, op_type: str, inputs: Sequence[ir.Value]) -> ir.Value:
        write, carried = self._found.write, self._body.inputs[2 + self._found.at]
        node = ir.node(op_type, inputs)
        value = node.outputs[0]
        node.name = value.name = self._names.fresh(f"{write.outputs[0].name}_slice")
        value.type = carried.type or write.outputs[0].type
        shape = list(self._types.shape(write.inputs[2]) or ())
        value.shape = ir.Shape(shape[: self._found.axis] + shape[self._found.axis + 1 :])
        self._body.insert_before(write, node)
        return value

    def _laid_out(self, stacked: ir.Value, initial: ir.Value, sizes: Sequence[int | ir.SymbolicDim]) -> ir.Value:
        """The whole tensor."""
        axis, where = self._found.axis, self._found.slots
        inner = stacked
        if where.backwards:
            inner = self._sliced(inner, 0, -1, _ALL.min, -1)
        if axis:
            order = [*range(1, axis + 1), 0, *range(axis + 1, len(sizes))]
            inner = self._behind("Transpose", [inner], perm=order)
        if not all(isinstance(size, int) for size in sizes[1:]):
            inner = self._behind("Reshape", [inner, self._shape(inner, initial)], allowzero=1)
        return inner if self._is_whole() else self._between(inner, initial)

    def _shape(self, inner: ir.Value, initial: ir.Value) -> ir.Value:
        if self._is_whole():
            return _filled(initial, self._types) or self._behind("Shape", [initial])
        axis, rank = self._found.axis, len(self._types.shape(initial) or ())
        parts = [self._behind("Shape", [initial], start=0, end=axis)] if axis else []
        length = self._behind("Shape", [inner], start=axis, end=axis + 1)
        # passes take a size as it is for one that need not be told, which after no turn it needs
        parts.append(self._behind("Max", [length, self._constant([0])]))
        parts += [self._behind("Shape", [initial], start=axis + 1)] if axis + 1 < rank else []
        return self._behind("Concat", parts, axis=0)

    def _between(self, inner: ir.Value, initial: ir.Value) -> ir.Value:
        """With what was there before, on both sides."""
        axis, where = self._found.axis, self._found.slots
        length = self._behind("Shape", [inner], start=axis, end=axis + 1)
        parts = [inner]
        if where.backwards:
            end = self._behind("Shape", [initial], start=axis, end=axis + 1)
            end = self._behind("Sub", [end, self._constant([where.behind])]) if where.behind else end
            parts += [self._sliced(initial, axis, end, _ALL.max)] if where.behind else []
            if where.before or where.behind > 1 or self._ends_early:  # a short axis has all behind, and no turn
                parts.insert(0, self._sliced(initial, axis, 0, self._behind("Sub", [end, length])))
            return self._joined(parts)
        if where.behind or self._ends_early:
            rest = self._behind("Add", [length, self._constant([where.before])]) if where.before else length
            parts += [self._sliced(initial, axis, rest, _ALL.max)]
        if where.before:
            parts.insert(0, self._sliced(initial, axis, 0, where.before))
        return self._joined(parts)

    def _joined(self, parts: Sequence[ir.Value]) -> ir.Value:
        return self._behind("Concat", parts, axis=self._found.axis)

    def _sliced(
        self, value: ir.Value, axis: int, start: int | ir.Value, end: int | ir.Value, step: int = 1
    ) -> ir.Value:
        bounds = [self._constant([each]) if isinstance(each, int) else each for each in (start, end, axis, step)]
        return self._behind("Slice", [value, *bounds])

    def _behind(self, op_type: str, inputs: Sequence[ir.Value], **attributes: int | Sequence[int]) -> ir.Value:
        node = ir.node(op_type, inputs, attributes)
        node.name = node.outputs[0].name = self._names.fresh(f"{self._loop.outputs[self._found.at].name}_{op_type}")
        assert self._loop.graph is not None
        self._loop.graph.insert_before(self._loop, node)
        return node.outputs[0]

    def _constant(self, numbers: Sequence[int], before: ir.Node | None = None) -> ir.Value:
        return write_constant(before or self._loop, np.array(numbers, np.int64), "number", self._names)


def _filled(value: ir.Value, types: Types) -> ir.Value | None:
    """The sizes that a tensor is made from, which is then not needed itself where all of it is written."""
    node = value.producer()
    if node is None or node.domain or node.op_type not in ("ConstantOfShape", "Expand"):
        return None
    element = () if node.op_type == "ConstantOfShape" else types.shape(node.inputs[0])
    return None if element is None or set(element) - {1} else node.inputs[-1]


def _ends_early(loop: ir.Node, body: ir.Graph, types: Types) -> bool:
    """Whether a loop may take fewer turns than it is told."""
    begins, goes_on = loop.inputs[1], body.outputs[0]
    known = None if begins is None else types.known.array(begins)
    if begins is not None and (known is None or not known.all()):
        return True
    return not any(value is body.inputs[1] or _is_true(value, types) for value in _same(goes_on))


def _same(value: ir.Value) -> Iterator[ir.Value]:
    """A value, and what it is a copy of."""
    yield value
    while (node := value.producer()) is not None and node.op_type == "Identity" and node.inputs[0] is not None:
        value = node.inputs[0]
        yield value


def _is_true(value: ir.Value, types: Types) -> bool:
    known = types.known.array(value)
    return known is not None and bool(known.all())
