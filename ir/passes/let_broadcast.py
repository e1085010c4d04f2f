from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from entrepot.ir.passes.dims import is_checked, same_dim
from entrepot.ir.passes.graphs import has_references, typed_graphs
from entrepot.ir.traits import traits_of
from entrepot.ir.typing.query import Types

_BROADCASTING = 8
"""The opset from which all of them broadcast as NumPy does."""


_OF_MATRIX = 2
"""How many axes a matrix has; those before them broadcast in a product."""


class LetBroadcast(ir.passes.InPlacePass):
    """Leave out an Expand before operators that broadcast as far without it.

    Before: ``Where(c, Expand(1.0, Shape(x)), x)``. After: ``Where(c, 1.0, x)``. Products of matrices do, too.
    What computed the shape is for ``DropUnused``. Subgraphs and functions are covered.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        left_out = [
            _left_out(node, types)
            for graph, types in typed_graphs(model)
            if types.opsets.get("", 0) >= _BROADCASTING
            for node in list(graph)
            if node.op_type == "Expand" and not node.domain and not has_references(node)
        ]
        return ir.passes.PassResult(model, modified=any(left_out))


def _left_out(node: ir.Node, types: Types) -> bool:
    data, wide = node.inputs[0], node.outputs[0]
    if data is None or is_checked(node.inputs[1], types):
        return False
    readers = [use.node for use in wide.uses() if _suffices(use.node, wide, data, types)]
    for reader in dict.fromkeys(readers):
        for at, value in enumerate(reader.inputs):
            if value is wide:
                reader.replace_input_with(at, data)
    return bool(readers)


def _suffices(reader: ir.Node, wide: ir.Value, data: ir.Value, types: Types) -> bool:
    """Whether a reader of ``wide`` has the same result with ``data``: another operand has each size that it lacks."""
    is_product = reader.op_type == "MatMul" and not reader.domain
    if has_references(reader) or not (is_product or traits_of(reader).broadcasts):
        return False
    result = types.shape(reader.outputs[0])
    shapes = [types.shape(data if value is wide else value) for value in reader.inputs]
    if result is None or any(shape is None for shape in shapes):
        return False
    known = [shape for shape in shapes if shape is not None]
    if not is_product:
        return all(_has(known, back, dim) for back, dim in enumerate(reversed(result), 1))
    leading = list(enumerate(reversed(result), 1))[_OF_MATRIX:]
    return _are_matrices(known, types.shape(data), types.shape(wide)) and all(_has(known, *each) for each in leading)


def _are_matrices(operands: Sequence[ir.Shape], data: ir.Shape | None, wide: ir.Shape | None) -> bool:
    """Whether all operands of a product are, and those of ``data`` are as large as those of ``wide``."""
    if data is None or wide is None or any(len(shape) < _OF_MATRIX for shape in operands):
        return False
    return all(map(same_dim, data[-_OF_MATRIX:], wide[-_OF_MATRIX:]))


def _has(shapes: Sequence[ir.Shape], back: int, dim: int | ir.SymbolicDim) -> bool:
    """Whether an operand certainly has a size of the result on the axis that is counted from the last one."""
    return any(len(shape) >= back and same_dim(shape[-back], dim) for shape in shapes)
