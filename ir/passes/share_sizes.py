from __future__ import annotations

from typing import TypeAlias

import onnx_ir as ir

from entrepot.ir.inference import scope_types
from entrepot.ir.opset.extents import is_named
from entrepot.ir.passes.graphs import has_references
from entrepot.ir.typing.query import Types

_ONE_AXIS = 15
"""The opset from which a Shape may return some of the sizes."""


class ShareSizes(ir.passes.InPlacePass):
    """Read sizes of one name from one place: an input of the model, or what was asked for it first.

    Before: ``Shape<start = 0, end = 1>(h)`` where axis 0 of ``h`` is called ``batch``, as that of the input ``x`` is.
    After: ``Shape<start = 0, end = 1>(x)``. What only told the size is for ``DropUnused``. Sizes of inputs are
    read where they are, since a graph may check that those of two are equal. A Size is asked of the first value of a
    shape. Bodies of loops are left alone, since names of sizes there hold for one turn.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        graph = model.graph
        if graph.opset_imports.get("", 0) < _ONE_AXIS:
            return ir.passes.PassResult(model, modified=False)
        types, places = scope_types(model)[graph], _places(graph)
        counted: dict[tuple[str, ...], ir.Value] = {}
        shared = [
            _share(node, places, types) if node.op_type == "Shape" else _share_count(node, counted, types)
            for node in graph
            if node.op_type in ("Shape", "Size") and not node.domain and not has_references(node)
        ]
        return ir.passes.PassResult(model, modified=any(shared))


_Places: TypeAlias = dict[str, tuple[ir.Value, int]]
"""By name, a value and an axis of it that has this size."""


def _places(graph: ir.Graph) -> _Places:
    found: _Places = {}
    for value in graph.inputs:
        for axis, dim in enumerate(value.shape or ()):
            if isinstance(dim, ir.SymbolicDim) and is_named(dim):
                found.setdefault(str(dim.value), (value, axis))
    return found


def _share(node: ir.Node, places: _Places, types: Types) -> bool:
    data, shape = node.inputs[0], types.shape(node.inputs[0])
    if data is None or shape is None or data.is_graph_input():
        return False
    start, end = node.attributes.get_int("start", 0), node.attributes.get_int("end", len(shape))
    start, end, _ = slice(start, end).indices(len(shape))
    size = shape[start] if end == start + 1 else None
    if not isinstance(size, ir.SymbolicDim) or not is_named(size):
        return False
    value, axis = places.setdefault(str(size.value), (data, start))
    if value is data:
        return False
    node.replace_input_with(0, value)
    for name, place in {"start": axis, "end": axis + 1}.items():
        node.attributes[name] = ir.AttrInt64(name, place)
    return True


def _share_count(node: ir.Node, counted: dict[tuple[str, ...], ir.Value], types: Types) -> bool:
    data, shape = node.inputs[0], types.shape(node.inputs[0])
    if data is None or shape is None or not all(isinstance(dim, int) or is_named(dim) for dim in shape):
        return False
    value = counted.setdefault(tuple(map(str, shape)), data)
    if value is data or data.is_graph_input():
        return False
    node.replace_input_with(0, value)
    return True
