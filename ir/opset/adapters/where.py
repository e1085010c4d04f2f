"""Where, and what stood in for it before opset 9.

Nothing selected before: booleans by logic, integers by modular arithmetic, both exact. Floats by gathering from the
two operands laid side by side, which keeps infinities and NaN but needs fixed shapes.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, decomposition, unchanged

unchanged("Where", 9, 16)


@decomposition("Where", 9)
def where(op: OpBuilder, _node: ir.Node) -> Replacement:
    """Choose the exact way for the element type."""
    condition, x, y = (op.x(index) for index in range(3))
    dtype = op.need_dtype(x)
    if dtype == ir.DataType.BOOL:
        return op.Or(op.And(condition, x), op.And(op.Not(condition), y))
    if dtype in (ir.DataType.INT32, ir.DataType.INT64):
        chosen = op.Mul(op.Sub(x, y), op.Cast(condition, to=int(dtype)))
        return op.Add(y, chosen)
    return _gathered(op, condition, x, y)


def _gathered(op: OpBuilder, condition: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    shapes = [op.shape(value) for value in (condition, x, y)]
    if any(shape is None or None in shape for shape in shapes):
        op.refuse(
            "selecting floats before opset 9 needs fixed shapes",
            hint="possible with fixed shapes, or from opset 9 on",
        )
    shape = np.broadcast_shapes(*(tuple(dim or 0 for dim in item or []) for item in shapes))
    count = int(np.prod(shape))
    op.need_small(count)
    flat = [op.Reshape(op.Expand(value, op.ints(*shape)) if shape else value, op.ints(-1)) for value in (x, y)]
    refused = op.Cast(op.Not(condition), to=int(ir.DataType.INT64))
    position = op.Add(op.const(np.arange(count).reshape(shape)), op.Mul(refused, op.const(np.int64(count))))
    return op.Gather(op.Concat(*flat, axis=0), position, axis=0)
