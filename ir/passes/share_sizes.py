from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.inference import scope_types
from entrepot.ir.opset.extents import is_named
from entrepot.ir.passes.dims import same_dim
from entrepot.ir.passes.graphs import has_references
from entrepot.ir.typing.query import Types

_ONE_AXIS = 15
"""The opset from which a Shape may return some of the sizes."""


class ShareSizes(ir.passes.InPlacePass):
    """Read a size that an input of the model has from there.

    Before: ``Shape<start = 0, end = 1>(h)`` where axis 0 of ``h`` is called ``batch``, as that of the input ``x`` is.
    After: ``Shape<start = 0, end = 1>(x)``. What only told the size is for ``DropUnused``. Bodies of loops are left
    alone, since names of sizes there hold for one turn.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        graph = model.graph
        if graph.opset_imports.get("", 0) < _ONE_AXIS:
            return ir.passes.PassResult(model, modified=False)
        types = scope_types(model)[graph]
        shared = [_share(node, graph, types) for node in graph if node.op_type == "Shape" and not node.domain]
        return ir.passes.PassResult(model, modified=any(shared))


def _share(node: ir.Node, graph: ir.Graph, types: Types) -> bool:
    shape = types.shape(node.inputs[0])
    if shape is None or has_references(node):
        return False
    start, end = node.attributes.get_int("start", 0), node.attributes.get_int("end", len(shape))
    start, end, _ = slice(start, end).indices(len(shape))
    size = shape[start] if end == start + 1 else None
    if not isinstance(size, ir.SymbolicDim) or not is_named(size):
        return False
    for value in graph.inputs:
        for axis, dim in enumerate(value.shape or ()):
            if same_dim(dim, size):
                return _read_from(node, value, axis)
    return False


def _read_from(node: ir.Node, value: ir.Value, axis: int) -> bool:
    """Whether that is anything new."""
    if node.inputs[0] is value:
        return False
    node.replace_input_with(0, value)
    for name, place in {"start": axis, "end": axis + 1}.items():
        node.attributes[name] = ir.AttrInt64(name, place)
    return True
