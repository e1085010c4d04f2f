"""Softmax, LogSoftmax and Hardmax.

| version | meaning |
|---|---|
| 1 | flattens to 2-D at ``axis`` (default 1), which may not be negative |
| 11 | ``axis`` may be negative |
| 13 | works along ``axis`` alone (default -1) |
"""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.axes import normalised_axis
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, extended

for _name in ("Softmax", "LogSoftmax", "Hardmax"):
    extended(_name, 1, 11)


@adapter("Softmax", 11, 13)
@adapter("LogSoftmax", 11, 13)
@adapter("Hardmax", 11, 13)
def softmax_up(op: OpBuilder, node: ir.Node) -> Replacement:
    """Spell out the 2-D coercion, unless ``axis`` is the last one, where it changes nothing."""
    x, given = op.x(), node.attributes.get("axis")
    if given is None or not given.is_ref():
        rank, axis = op.rank(x), op.attr("axis", 1)
        if axis == -1 or (rank is not None and axis % rank == rank - 1):
            return op.set(axis=-1)
    flat = op.emit(node.op_type, [op.Flatten(x, axis=given)], {"axis": -1})
    return op.Reshape(flat, op.Shape(x))


@adapter("Softmax", 13, 11)
@adapter("LogSoftmax", 13, 11)
@adapter("Hardmax", 13, 11)
def softmax_down(op: OpBuilder, node: ir.Node) -> Replacement:
    """Bring ``axis`` to the end, where flattening changes nothing."""
    x, axis = op.x(), op.attr("axis", -1)
    rank = op.rank(x)
    if axis == -1 or (rank is not None and axis % rank == rank - 1):
        return op.set(axis=-1)
    rank = op.need_rank(x)
    order = [item for item in range(rank) if item != axis % rank] + [axis % rank]
    inverse = sorted(range(rank), key=order.__getitem__)
    last = op.emit(node.op_type, [op.Transpose(x, perm=order)], {"axis": -1})
    return op.Transpose(last, perm=inverse)


@adapter("Softmax", 11, 1)
@adapter("LogSoftmax", 11, 1)
@adapter("Hardmax", 11, 1)
def softmax_without_negative_axis(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Count the axis from the front."""
    return normalised_axis(op, default=1)
