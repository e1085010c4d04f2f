"""Where, and what stands in for it before opset 9.

No operator selected before: booleans go by logic, integers by modular arithmetic, both exact; floats by gathering from
the two operands laid side by side, which keeps infinities and NaN. Shapes that are not fixed are computed.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.adapters.parts.positions import counted
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, decomposition, unchanged

INT64 = int(ir.DataType.INT64)

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
    refused = op.Cast(op.Not(condition), to=INT64)
    if any(shape is None or None in shape for shape in shapes):
        shape, numbers, count = _computed_numbers(op, refused, x, y)
    else:
        fixed = np.broadcast_shapes(*(tuple(dim or 0 for dim in item or []) for item in shapes))
        op.need_small(int(np.prod(fixed)))
        shape, count = op.ints(*fixed), op.const(np.int64(np.prod(fixed)))
        numbers = op.const(np.arange(int(np.prod(fixed))).reshape(fixed))  # the product of no factors is a float
    whole = [x, y] if shapes == [[], [], []] else [op.Expand(value, shape) for value in (x, y)]
    flat = [op.Reshape(value, op.ints(-1)) for value in whole]
    result: ir.Value = op.Gather(op.Concat(*flat, axis=0), op.Add(numbers, op.Mul(refused, count)), axis=0)
    return result


def _computed_numbers(
    op: OpBuilder, refused: ir.Value, x: ir.Value, y: ir.Value
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The shape that all three broadcast to, its elements numbered, and how many they are."""
    zero = op.const(np.int64(0))  # without adding a rank: scalars stay scalars
    nothing = [op.Mul(_as_number(op, value), zero) for value in (refused, x, y)]
    whole = op.Add(op.Add(nothing[0], nothing[1]), nothing[2])
    shape, count = op.Shape(whole), op.Size(whole)
    return shape, op.Reshape(counted(op, op.Reshape(count, op.ints(1))), shape), count


def _as_number(op: OpBuilder, value: ir.Value) -> ir.Value:
    """Some integers of the same shape; their values do not matter, but no float is out of their range."""
    number: ir.Value = op.Cast(op.Cast(value, to=int(ir.DataType.BOOL)), to=INT64)
    return number
