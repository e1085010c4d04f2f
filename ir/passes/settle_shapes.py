from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.extents import Extent
from entrepot.ir.opset.names import Names
from entrepot.ir.passes.dims import as_constant, extents_of, is_axis, is_checked
from entrepot.ir.passes.graphs import has_references, may_write_constants, replace, typed_graphs, write_constant
from entrepot.ir.typing.query import Types


class SettleShapes(ir.passes.InPlacePass):
    """Write shapes as constants where sizes of the input are only passed on.

    Before: ``Reshape(x, Concat(Shape(x)[0:1], [288]))``. After: ``Reshape(x, [-1, 288])``.
    0 in the constant is a size that stays, -1 the one that is left; where both would be needed and the result has two
    axes, the Reshape becomes a Flatten, which also holds for empty axes. An Expand keeps a size with 1. What computed
    the shape is for ``DropUnused``. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        names = Names(model)
        settled = [
            _settle(node, types, names)
            for graph, types in typed_graphs(model)
            if may_write_constants(types)
            for node in list(graph)
            if node.op_type in _TARGETS and not node.domain and len(node.inputs) == 2
        ]
        return ir.passes.PassResult(model, modified=any(settled))


def _settle(node: ir.Node, types: Types, names: Names) -> bool:
    data, shape = node.inputs
    if data is None or types.known.array(data) is not None or types.known.array(shape) is not None:
        return False
    if is_checked(shape, types) or has_references(node):
        return False
    sizes = extents_of(node.outputs[0], shape, types)
    if sizes is None:
        return False
    constant = _TARGETS[node.op_type](data, sizes, types)
    if constant is not None:
        node.attributes.pop("allowzero", None)
        node.replace_input_with(1, write_constant(node, np.array(constant, np.int64), "shape", names))
        return True
    if node.op_type == "Reshape" and len(sizes) == 2 and 0 not in sizes and is_axis(sizes[0], data, 0, types):
        replace(node, ir.node("Flatten", [data], {"axis": 1}))
        return True
    return False


def _expanded(data: ir.Value, sizes: list[Extent], types: Types) -> list[int] | None:
    """What an Expand of ``data`` to these sizes may be given: 1 for every size that ``data`` has."""
    shape = types.shape(data)
    if shape is None:
        return None
    new = len(sizes) - len(shape)
    found = [
        size if isinstance(size, int) else 1 if axis >= new and is_axis(size, data, axis - new, types) else None
        for axis, size in enumerate(sizes)
    ]
    return None if None in found else [size for size in found if size is not None]


_TARGETS = {"Reshape": as_constant, "Expand": _expanded}
