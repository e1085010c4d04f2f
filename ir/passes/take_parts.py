from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.names import Names
from entrepot.ir.passes.graphs import bypass, has_references, may_write_constants, replace, typed_graphs, write_constant
from entrepot.ir.passes.ranges import Range, range_of, size_of
from entrepot.ir.typing.query import Types

_INPUTS = 13
"""The opset from which Slice, Squeeze and Unsqueeze all take what they do as inputs."""


class TakeParts(ir.passes.InPlacePass):
    """Take from the parts of a Concat what is taken from the whole.

    Before: ``c = Concat<axis = 1>(a, b)``, ``Slice(c, [0], [size of a], [1])``. After: ``a``.
    Part of a part is taken from that part, and several parts are a Concat of their own; an element of a stack is what
    was stacked there. What nothing else reads is no part of its own: a Concat in a Concat, a Slice of which others are
    Slices, or from which one element is taken. Rows that are written one by one become one Concat this way, and the
    numbers of a vector, read one by one, that vector. Sizes along the axis have to be known. Subgraphs and functions
    are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names = Names(model)
        taken = [
            _RULES[node.op_type](node, types, names)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _INPUTS
            for node in list(graph)
            if node.op_type in _RULES and not node.domain and not has_references(node)
        ]
        return ir.passes.PassResult(model, modified=any(taken))


def _slice(node: ir.Node, types: Types, names: Names) -> bool:
    taken, source = range_of(node, types), _producer(node.inputs[0])
    if taken is None or source is None:
        return False
    if source.op_type == "Slice":
        goes = _is_only_sliced(source.outputs[0], taken.axis, types)
        return goes and _slice_from(node, node.inputs[0], taken, types, names)
    parts = _parts(source, taken.axis, types) if source.op_type == "Concat" else None
    touched = [part for part in parts or () if part.start < taken.end and part.end > taken.start]
    if not touched:
        return False
    exact = (touched[0].start, touched[-1].end) == (taken.start, taken.end)
    if len(touched) == 1:
        (part,) = touched
        moved = Range(taken.axis, taken.start - part.start, taken.end - part.start)
        return bypass(node, part.value) if exact else _slice_from(node, part.value, moved, types, names)
    if exact:
        replace(node, ir.node("Concat", [part.value for part in touched], {"axis": taken.axis}))
    return exact


def _is_only_sliced(value: ir.Value, axis: int, types: Types) -> bool:
    """Whether a Slice is read by such alone as can be one with it; one that stays is smaller than what it is of."""
    readers = [each.node for each in value.uses()]
    ranges = [range_of(each, types) if each.op_type == "Slice" and not each.domain else None for each in readers]
    return not value.is_graph_output() and all(each is not None and each.axis == axis for each in ranges)


def _slice_from(node: ir.Node, data: ir.Value | None, taken: Range, types: Types, names: Names) -> bool:
    """Let a Slice take a range of ``data``, or of what that is a slice of; whether that is anything new."""
    start, end = taken.start, taken.end
    while (source := _producer(data)) is not None and source.op_type == "Slice":
        outer = range_of(source, types)
        if outer is None or outer.axis != taken.axis:
            break
        data, start, end = source.inputs[0], start + outer.start, end + outer.start
    if data is node.inputs[0]:
        return False
    bounds = {"starts": start, "ends": end, "axes": taken.axis}
    written = [write_constant(node, np.array([each], np.int64), what, names) for what, each in bounds.items()]
    replace(node, ir.node("Slice", [data, *written]))
    return True


def _producer(value: ir.Value | None) -> ir.Node | None:
    """The node of the standard, without references, that computes a value."""
    node = None if value is None else value.producer()
    return None if node is None or node.domain or has_references(node) else node


def _gather(node: ir.Node, types: Types, names: Names) -> bool:
    """An element of what was stacked, or of a slice."""
    index, source, shape = types.known.array(node.inputs[1]), _producer(node.inputs[0]), types.shape(node.inputs[0])
    if source is None or index is None or index.shape or shape is None:
        return False
    axis = node.attributes.get_int("axis", 0) % len(shape)
    if source.op_type == "Slice":
        return _gather_from(node, source, axis, int(index), types, names)
    parts = (_parts(source, axis, types) if source.op_type == "Concat" else None) or []
    place = int(index) + (parts[-1].end if parts and index < 0 else 0)
    single = next((part.value for part in parts if (part.start, part.end) == (place, place + 1)), None)
    stacked = _producer(single)
    if stacked is None or stacked.op_type != "Unsqueeze" or stacked.inputs[0] is None:
        return False
    added = types.known.array(stacked.inputs[1])
    if added is None or [int(each) % len(shape) for each in added] != [axis]:
        return False
    return bypass(node, stacked.inputs[0])


def _gather_from(node: ir.Node, source: ir.Node, axis: int, index: int, types: Types, names: Names) -> bool:
    taken = range_of(source, types) if _is_read_once(source.outputs[0]) else None
    if taken is None or taken.axis != axis or not may_write_constants(types):
        return False
    place = index + (taken.start if index >= 0 else taken.end)
    if not taken.start <= place < taken.end:
        return False  # an error when the model runs, and stays one
    written = write_constant(node, np.array(place, np.int64), "index", names)
    replace(node, ir.node("Gather", [source.inputs[0], written], {"axis": axis}))
    return True


def _concat(node: ir.Node, types: Types, names: Names) -> bool:
    """Without parts that are empty, and with the parts of a part; what was taken apart is itself."""
    shape = types.shape(node.outputs[0])
    if shape is None:
        return False
    axis = node.attributes["axis"].as_int() % len(shape)
    if (whole := _taken_apart(node, axis, types)) is not None:
        return bypass(node, whole)
    inputs = [each for value in node.inputs for each in _spread(value, axis, types)]
    kept = [value for value in inputs if size_of(value, axis, types) != 0] or inputs[:1]
    if kept == list(node.inputs):
        return False
    replace(node, ir.node("Concat", kept, {"axis": axis}))
    return True


def _taken_apart(node: ir.Node, axis: int, types: Types) -> ir.Value | None:
    """The value whose elements along an axis, one after the other, are the parts of a Concat."""
    taken = [_piece(value, axis, types) for value in node.inputs]
    whole, end = taken[0][0], 0
    for value, start, stop in taken:
        if value is None or value is not whole or start != end:
            return None
        end = stop
    return whole if size_of(whole, axis, types) == end else None


def _piece(value: ir.Value | None, axis: int, types: Types) -> tuple[ir.Value | None, int, int]:
    """What a part is taken from, and from where to where."""
    source = _producer(value)
    taken = range_of(source, types) if source is not None and source.op_type == "Slice" else None
    if source is not None and taken is not None and taken.axis == axis:
        return source.inputs[0], taken.start, taken.end
    whole, place = _element(value, axis, types)
    return whole, place, place + 1


def _element(value: ir.Value | None, axis: int, types: Types) -> tuple[ir.Value | None, int]:
    """What a part is an element of, and which, counted from the front."""
    made, rank = _producer(value), types.shape(value)
    if made is None or not made.inputs or rank is None:
        return None, 0
    keeps = made.op_type == "Gather"
    gather = made if keeps else _producer(made.inputs[0])
    if gather is None or gather.op_type != "Gather" or not (keeps or _adds_only(made, axis, len(rank), types)):
        return None, 0
    place = types.known.array(gather.inputs[1])
    if (
        place is None
        or place.shape != ((1,) if keeps else ())
        or gather.attributes.get_int("axis", 0) % len(rank) != axis
    ):
        return None, 0
    return gather.inputs[0], int(place.item())


def _adds_only(node: ir.Node, axis: int, rank: int, types: Types) -> bool:
    """Whether all that a node does is to add an axis."""
    if node.op_type == "Reshape":
        return rank == 1 and types.shape(node.inputs[0]) == ir.Shape([])
    added = types.known.array(node.inputs[1]) if node.op_type == "Unsqueeze" else None
    return added is not None and [int(each) % rank for each in added] == [axis]


def _spread(value: ir.Value | None, axis: int, types: Types) -> Sequence[ir.Value | None]:
    """The parts of what nothing else reads, or the value."""
    node, shape = _producer(value), types.shape(value)
    if value is None or node is None or node.op_type != "Concat" or shape is None:
        return [value]
    return node.inputs if _is_read_once(value) and node.attributes["axis"].as_int() % len(shape) == axis else [value]


def _is_read_once(value: ir.Value) -> bool:
    return len(value.uses()) == 1 and not value.is_graph_output()


_RULES = {"Slice": _slice, "Gather": _gather, "Concat": _concat}


@dataclass(frozen=True)
class _Part:
    """An operand of a Concat, and from where to where it lies."""

    value: ir.Value
    start: int
    end: int


def _parts(node: ir.Node, axis: int, types: Types) -> list[_Part] | None:
    """The operands of a Concat along this axis, in order; ``None`` if not all of their sizes are known."""
    shape = types.shape(node.outputs[0])
    if shape is None or node.attributes["axis"].as_int() % len(shape) != axis:
        return None
    found: list[_Part] = []
    for value in node.inputs:
        size = size_of(value, axis, types)
        if value is None or size is None:
            return None
        start = found[-1].end if found else 0
        found.append(_Part(value, start, start + size))
    return found
