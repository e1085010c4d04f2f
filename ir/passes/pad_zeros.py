from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.extents import Extent
from entrepot.ir.opset.names import Names
from entrepot.ir.passes.dims import extents_of, is_axis, is_checked
from entrepot.ir.passes.graphs import has_references, replace, typed_graphs, write_constant
from entrepot.ir.typing.query import Types

_INPUTS = 13
"""The opset from which Pad takes whole numbers, too, and no operator its axes as an attribute."""

_KINDS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64})

_MOVES = frozenset({"Flatten", "Gather", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})


class PadZeros(ir.passes.InPlacePass):
    """Pad with what would be written first and then put beside a value.

    Before: ``Concat<axis = 1>(x, Expand(0.0, [b, 1]))``. After: ``Pad(x, [0, 0, 0, 1])``.
    Only of one number in nodes that nothing else reads, as many as is known. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names = Names(model)
        padded = [
            _pad(node, types, names)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _INPUTS
            for node in list(graph)
            if node.op_type == "Concat" and not node.domain and not has_references(node)
        ]
        return ir.passes.PassResult(model, modified=any(padded))


def _pad(node: ir.Node, types: Types, names: Names) -> bool:
    shape, kind = types.shape(node.outputs[0]), types.dtype(node.outputs[0])
    if shape is None or kind not in _KINDS:
        return False
    axis = node.attributes["axis"].as_int() % len(shape)
    fills = [_filled(value, axis, types) for value in node.inputs]
    if fills.count(None) != 1:
        return False
    at = fills.index(None)
    data, written = node.inputs[at], [each for each in fills if each is not None]
    if not written or not all(_fits(each, data, axis, types) for each in written):
        return False
    number = written[0].number
    if any(each.number.tobytes() != number.tobytes() for each in written[1:]):
        return False
    pads = np.zeros((2, len(shape)), np.int64)
    for place, each in enumerate(fills):
        pads[int(place > at), axis] += 0 if each is None else each.along(axis)
    given = [data, write_constant(node, pads.reshape(-1), "pads", names)]
    if number.tobytes().strip(b"\0"):
        given.append(write_constant(node, number, "value", names))
    replace(node, ir.node("Pad", given))
    return True


class _Fill(NamedTuple):
    """A value that has one number everywhere."""

    sizes: list[Extent]
    number: np.ndarray

    def along(self, axis: int) -> int:
        """How much of it there is, if that is known; else 0."""
        size = self.sizes[axis]
        return size if isinstance(size, int) else 0


def _filled(value: ir.Value | None, axis: int, types: Types) -> _Fill | None:
    number = _number(value, types)
    node = None if value is None else value.producer()
    if value is None or node is None or number is None:
        return None
    sizes = extents_of(value, node.inputs[1] if node.op_type == "Expand" else None, types)
    fill = None if sizes is None else _Fill(sizes, number)
    return fill if fill is not None and fill.along(axis) else None


def _number(value: ir.Value | None, types: Types) -> np.ndarray | None:
    """What all elements of a value are that is filled in nodes which nothing else reads; a scalar."""
    while value is not None and len(value.uses()) == 1 and not value.is_graph_output():
        node = value.producer()
        if node is None or node.domain or has_references(node) or any(is_checked(at, types) for at in node.inputs[1:]):
            return None
        if node.op_type == "Expand":
            known = types.known.array(node.inputs[0])
            return known.reshape(()) if known is not None and known.size == 1 else None
        if node.op_type not in _MOVES:
            return None
        value = node.inputs[0]
    return None


def _fits(fill: _Fill, data: ir.Value | None, axis: int, types: Types) -> bool:
    """Whether both certainly have the same sizes but for the axis."""
    if data is None or len(types.shape(data) or ()) != len(fill.sizes):
        return False
    return all(at == axis or is_axis(size, data, at, types) for at, size in enumerate(fill.sizes))
